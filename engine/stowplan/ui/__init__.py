"""Pages for browsers: each one file that needs no network, made from a value of the rooms below."""
