"""The cells of recurrent networks, one module each: their arrays, settings and results. No module handles arrays."""
