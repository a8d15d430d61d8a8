"use strict";
// A browser starts no worker for a page that was opened from a folder: the search of such a page runs in a hidden frame.
if (location.protocol === "file:")
  self.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.waiting = [];
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...scripts) => scripts.reduce((done, each) => done.then(() => this.load(each)), Promise.resolve());
      inside.__index = self.__index;
      this.load(url).then(() => {
        const queued = this.waiting;
        this.waiting = null;
        queued.forEach((data) => this.postMessage(data));
      });
    }
    load(url) {
      return new Promise((done, fail) => {
        const script = this.frame.contentDocument.createElement("script");
        Object.assign(script, { src: new URL(url, location), onload: done, onerror: fail });
        this.frame.contentDocument.head.append(script);
      });
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
