"""Files of the tasks with data: images (IDX), audio (WAV, NIST SPHERE), text.

Each reader checks what it reads: a file that is truncated, damaged or of another format raises a ValueError that names
the file and the fault, and no header makes a reader allocate more than the file justifies.
"""

from isometry.readers.audio import read_audio
from isometry.readers.idx import read_idx
from isometry.readers.sphere import read_sphere
from isometry.readers.text import read_text
from isometry.readers.wav import read_wav

__all__ = ["read_audio", "read_idx", "read_sphere", "read_text", "read_wav"]
