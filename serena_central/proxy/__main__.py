"""`python -I -m serena_central.proxy`: the proxy where no console script can be relied on."""

from serena_central.proxy.main import main

main()
