"""The output contract: what the provider is sent, what the model is told, how its answer is checked."""
