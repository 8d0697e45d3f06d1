"""The tile IR: what one program does to whole tiles, without hardware."""
