"""What stands in an RDB file where no key begins: the bytes above all types."""

from typing import Final

END: Final = 0xFF
SELECT: Final = 0xFE
EXPIRE_S: Final = 0xFD
EXPIRE_MS: Final = 0xFC
SIZES: Final = 0xFB
NOTE: Final = 0xFA
FREQUENCY: Final = 0xF9
IDLE: Final = 0xF8
MODULE_NOTE: Final = 0xF7
FUNCTIONS: Final = 0xF5
SLOT: Final = 0xF4
KEY_NOTES: Final = 0xF3  # of Redis
SLOT_IMPORT: Final = 0xF3  # of Valkey
SHAPE: Final = 0xF2
HIGHEST_TYPE: Final = 0x7F  # what is higher stands for itself, and has no key
