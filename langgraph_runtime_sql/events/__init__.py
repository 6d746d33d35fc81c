"""Events: what runs publish and subscribers receive."""
