"""The API server: lists and watches become events of the loop, effects of the loop become calls."""
