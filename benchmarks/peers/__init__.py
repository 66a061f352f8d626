"""wakeful beside other queues: the same job, the same machine, one run (`make bench-peers`)."""
