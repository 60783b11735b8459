"""The typed settings of every command: one dataclass per command and per group of the YAML.

A field has the name of its key. Its type says what is accepted; `Annotated[int, ">= 1"]` adds a
range, and a class's `__post_init__` checks what concerns several fields. The defaults stand in the
YAML; a field has one where a file of your own may leave the key out.
"""
