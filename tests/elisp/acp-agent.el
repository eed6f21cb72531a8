;;; acp-agent.el --- An agent that says the same to each prompt  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Speaks the Agent Client Protocol on standard input and output, in a
;; batch Emacs.  Its argument names a file, which gets each line that the
;; agent is sent.

;;; Code:

(require 'json)

(defun acp-agent-say (&rest message)
  "Write MESSAGE, a property list, as a line."
  (princ (concat (json-serialize (append '(:jsonrpc "2.0") message)) "\n")))

(defun acp-agent-chunk (session)
  "Tell the client of SESSION a part of the answer."
  (acp-agent-say
   :method "session/update"
   :params `(:sessionId ,session
             :update (:sessionUpdate "agent_message_chunk"
                      :content (:type "text" :text "Understood, all of it.")))))

(defun acp-agent-answer (method params)
  "Return the result of METHOD with PARAMS."
  (pcase method
    ("initialize"
     '(:protocolVersion 1 :authMethods []
       :agentCapabilities (:promptCapabilities (:embeddedContext t))))
    ("session/new" '(:sessionId "one"))
    ("session/prompt"
     (acp-agent-chunk (plist-get params :sessionId))
     '(:stopReason "end_turn"))
    (_ (make-hash-table))))

(let ((log (car command-line-args-left))
      (coding-system-for-write 'utf-8)
      line)
  (while (setq line (ignore-errors (read-from-minibuffer "")))
    (write-region (concat line "\n") nil log t 'silent)
    (let* ((message (json-parse-string line :object-type 'plist))
           (id (plist-get message :id)))
      (when id
        (acp-agent-say :id id :result (acp-agent-answer (plist-get message :method)
                                                        (plist-get message :params)))))))

;;; acp-agent.el ends here
