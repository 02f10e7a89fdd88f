// node lib/main.js ADDRESS NAMESPACE MODEL INPUT_URI
//
// Prints one JSON object a line. The activities run on the workers of tidegate; this program's own worker runs
// the workflows alone.

import { Client, Connection, WorkflowFailedError } from '@temporalio/client';
import { NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { misspelt, questions, slow } from './workflows';

const taskQueue = 'questions-typescript';

async function main(): Promise<void> {
  const [address, namespace, model, large] = process.argv.slice(2);
  Runtime.install({ logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} } });
  const connection = await NativeConnection.connect({ address });
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue,
    workflowsPath: require.resolve('./workflows'),
  });
  const client = new Client({ connection: await Connection.connect({ address }), namespace });
  const print = (value: unknown): void => console.log(JSON.stringify(value));
  await worker.runUntil(async () => {
    const start = { taskQueue };
    print(await client.workflow.execute(questions, { ...start, workflowId: 'typescript', args: [model, large] }));
    try {
      await client.workflow.execute(misspelt, { ...start, workflowId: 'typescript-misspelt', args: [model] });
    } catch (failure) {
      if (!(failure instanceof WorkflowFailedError)) throw failure;
      const cause = failure.cause?.cause as { type?: string; message?: string } | undefined;
      print({ failure: cause?.type, says: cause?.message });
    }
    const handle = await client.workflow.start(slow, { ...start, workflowId: 'typescript-slow', args: [model] });
    await new Promise((resolve) => setTimeout(resolve, 4000));
    const began = Date.now();
    await handle.cancel();
    await handle.result().catch((failure: unknown) => {
      if (!(failure instanceof WorkflowFailedError)) throw failure;
      print({ cancelled_after: (Date.now() - began) / 1000 });
    });
  });
  await connection.close();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
