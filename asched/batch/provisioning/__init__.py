"""ProvisioningRequests: checked, places held for them, their consumers placed there."""
