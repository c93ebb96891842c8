"""The append-only folder: files of commands, and the manifest that names them."""
