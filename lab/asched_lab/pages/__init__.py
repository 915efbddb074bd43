"""Documentation pages that are generated from the code and the manifests, and the site of docs/."""
