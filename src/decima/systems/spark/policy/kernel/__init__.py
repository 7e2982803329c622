"""The learned policy inside compiled code: layout of the weights, embeddings, scores, decisions, their record."""
