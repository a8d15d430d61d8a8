"""The HVX kernel: it emits HVX instructions in TIR for one step of a conv in a nest of rows."""
