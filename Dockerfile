# docker build -t attention . && docker run --gpus all --ipc=host \
#   -v "$PWD/datasets:/app/datasets" -v "$PWD/runs:/app/runs" attention make train GPUS=2
FROM python:3.11-slim

# make for the commands, a compiler for torch.compile
RUN apt-get update \
    && apt-get install -y --no-install-recommends make gcc g++ \
    && rm -rf /var/lib/apt/lists/*

ENV PIP_NO_CACHE_DIR=1
WORKDIR /app
COPY . .
# the pinned versions, from constraints.txt: torch's CUDA build brings its own CUDA libraries
RUN make install

CMD ["make", "help"]
