"""One module for each kind of document; each has `write(voice, **facts)`, which returns the text."""
