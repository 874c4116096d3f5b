"""The objects, one module each: their arguments and the checks that both faces share. Nothing here knows an array."""
