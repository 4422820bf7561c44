# Tests of the ONNX reader and writer.
