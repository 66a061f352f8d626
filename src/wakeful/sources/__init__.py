"""How items arrive without being sent: a source tells what is pending now, and the store what is new in that."""
