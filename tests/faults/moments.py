"""The moments of a training at which a trap can spring."""

IN_STEP = "inside a step"
IN_VALIDATION = "in validation"
IN_WRITING = "in the midst of writing a checkpoint"
BEFORE_RENAME = "between write and rename"
BETWEEN_NAMES = "between the names of a checkpoint"
AFTER_METRICS = "between metrics and checkpoint"
AT_EPOCH_END = "at the epoch's end"
