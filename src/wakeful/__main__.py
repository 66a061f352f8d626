"""`python -m wakeful` is `wakeful`."""

from wakeful.cli import main

if __name__ == "__main__":
    main()
