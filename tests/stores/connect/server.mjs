// SPDX-License-Identifier: Apache-2.0
//
// A Connect server, by connect-node, for Pyroscope's push service. Its messages are declared here from
// their published layout. What it has decoded goes on, encoded anew, to a judge (tests/stores/peer.py
// keeps the rules); what the judge says becomes the answer. Prints its port.
//
// usage: node server.mjs http://judge

import http from "node:http";
import { create, createFileRegistry, toBinary } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

const judge = process.argv[2];

function message(name, ...fields) {
  return {
    name,
    field: fields.map(([field, number, type, repeated]) => ({
      name: field,
      number,
      label: repeated ? Label.REPEATED : Label.OPTIONAL,
      ...(typeof type === "string" ? { type: Type.MESSAGE, typeName: type } : { type }),
    })),
  };
}

const files = create(FileDescriptorSetSchema, {
  file: [
    {
      name: "types.proto",
      package: "types.v1",
      syntax: "proto3",
      messageType: [message("LabelPair", ["name", 1, Type.STRING], ["value", 2, Type.STRING])],
    },
    {
      name: "push.proto",
      package: "push.v1",
      syntax: "proto3",
      dependency: ["types.proto"],
      messageType: [
        message("PushRequest", ["series", 1, ".push.v1.RawProfileSeries", true]),
        message("RawProfileSeries", ["labels", 1, ".types.v1.LabelPair", true],
          ["samples", 2, ".push.v1.RawSample", true]),
        message("RawSample", ["raw_profile", 1, Type.BYTES], ["ID", 2, Type.STRING]),
        message("PushResponse"),
      ],
      service: [{
        name: "PusherService",
        method: [{
          name: "Push", inputType: ".push.v1.PushRequest", outputType: ".push.v1.PushResponse",
        }],
      }],
    },
  ],
});
const registry = createFileRegistry(files);
const pusher = registry.getService("push.v1.PusherService");
const request = registry.getMessage("push.v1.PushRequest");

async function push(received) {
  if (received.$unknown?.length)
    throw new ConnectError("unknown fields", Code.InvalidArgument);
  const answer = await fetch(`${judge}/push.v1.PusherService/Push`, {
    method: "POST",
    headers: { "Content-Type": "application/proto" },
    body: toBinary(request, received),
  });
  if (!answer.ok)
    throw new ConnectError(await answer.text(), Code.InvalidArgument);
  return {};
}

const server = http.createServer(connectNodeAdapter({
  routes: (router) => router.service(pusher, { push }),
  readMaxBytes: 256 << 20,
}));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
