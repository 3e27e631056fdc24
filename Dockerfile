# Builds Bookcast and serves the lake at /lake, which is empty unless one is mounted. /data holds the embedded database:
#   docker build -t bookcast . && docker run -p 8080:8080 -v "$PWD/lake:/lake" bookcast
# The samples (invented books) lie apart, and their records in a store of their own:
#   docker run -p 8080:8080 bookcast serve --lake data-samples/lake --sample-records --data-dir /tmp/bookcast-samples
FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm prune --omit=dev

FROM node:22-bookworm-slim
# glibc would keep freed memory in an arena for each of some twenty threads.
ENV MALLOC_ARENA_MAX=2
ENV NODE_ENV=production BOOKCAST_HOST=0.0.0.0 BOOKCAST_PORT=8080 BOOKCAST_LAKE=/lake BOOKCAST_DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=build /app/server/storage/migrations server/storage/migrations
COPY --from=build /app/data-samples data-samples
COPY --from=build /app/package.json package.json
RUN mkdir /lake /data && chown -R node:node /lake /data
USER node
EXPOSE 8080
VOLUME /lake /data
ENTRYPOINT ["node", "--enable-source-maps", "dist/server/main.js"]
CMD ["serve"]
