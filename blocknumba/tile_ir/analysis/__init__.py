"""Static analyses: what holds of values in every run of a kernel."""
