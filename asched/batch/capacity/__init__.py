"""ElasticQuotas: what is reported beside the plugin."""
