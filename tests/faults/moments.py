"""The moments of a training run at which a fault can be injected."""

IN_STEP = "inside a step"
IN_VALIDATION = "in validation"
IN_WRITING = "while a checkpoint is written"
BEFORE_RENAME = "between write and rename"
BETWEEN_NAMES = "between the names of a checkpoint"
AFTER_METRICS = "between metrics and checkpoint"
AT_EPOCH_END = "at the end of an epoch"
