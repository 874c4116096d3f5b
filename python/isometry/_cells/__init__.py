"""The cells of recurrent networks, one module each: their arrays, settings and results. Nothing here knows an array."""
