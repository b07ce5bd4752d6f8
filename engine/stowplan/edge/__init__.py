"""The only room that touches the world: files and streams in, and later watches in and calls out."""
