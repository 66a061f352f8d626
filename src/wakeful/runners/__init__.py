"""How a run happens: behind one seam, in a process that can be ended."""
