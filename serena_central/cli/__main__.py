"""`python -m serena_central.cli`: the command line where no console script can be relied on."""

from serena_central.cli.main import main

main()
