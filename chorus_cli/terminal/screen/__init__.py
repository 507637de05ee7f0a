"""The screen: all output, made safe."""
