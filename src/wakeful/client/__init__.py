"""A fleet as a Python program asks it, from inside a run or from outside: `wakeful.Client`, `wakeful.AsyncClient`."""
