"""Rules of shapes, names and values with their messages, shared by both faces; none of them makes an array."""
