"""Rules of shapes, names and values with their messages, shared by both faces; no rule makes an array."""
