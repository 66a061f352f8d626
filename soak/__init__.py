"""What takes too long for `make test`: a writing process that is killed again and again. `make soak`."""
