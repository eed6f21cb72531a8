-- What a model of embeddings made of a message: little-endian 32-bit floats.
CREATE TABLE message_vector (
    model   TEXT NOT NULL,
    message INTEGER NOT NULL,
    vector  BLOB NOT NULL,
    PRIMARY KEY (model, message)
);
