"""make paper: the paper's experiments, and a report of them beside the paper's own numbers."""
