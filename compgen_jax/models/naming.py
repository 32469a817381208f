"""Names of recorded layers."""


def name_layers(layers) -> dict:
    """{'layer_00': code, 'layer_01': first hidden layer, ...}: sorted by name is in order, as
    JAX sorts the keys of a dict."""
    return {f"layer_{index:02d}": layer for index, layer in enumerate(layers)}
