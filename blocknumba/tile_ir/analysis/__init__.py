"""What is known of values without running the program."""
