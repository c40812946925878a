from serena_central.app.application import Application as Application
from serena_central.app.build import build as build
from serena_central.app.serving import CentralServer as CentralServer
