"""Programs partitioned over the blocks of a cluster."""
