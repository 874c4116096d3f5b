"""Rules of shapes, names and values with their messages, shared by both faces. Only the indices of a key are arrays."""
