from serena_central.app.build import build as build
from serena_central.app.central import Central as Central
from serena_central.app.serving import CentralServer as CentralServer
