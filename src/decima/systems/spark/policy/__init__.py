"""The learned policy: architecture, features, TensorFlow network, compiled inference, stored weights."""
