;;; llm-ert-server.el --- Servers written in Lisp  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A server of a test that a function of the test answers for, so that it
;; can say anything, also what no real server would:
;;
;;     (llm-ert-with-server
;;         (lambda (method _params)
;;           (pcase method
;;             ('textDocument/hover '(result (:contents "λ")))
;;             ('shutdown '(error 1 "not now"))
;;             ('initialized '((raw "half a li") hang-up))))
;;       (my-command))
;;
;; It serves a client of jsonrpc.el, as servers of the Language Server
;; Protocol do, or one that sends a message a line, as clients of MCP and
;; ACP do.

;;; Code:

(require 'llm-ert-core)
(eval-when-compile (require 'subr-x))

(cl-defstruct (llm-ert--server (:constructor llm-ert--make-server) (:copier nil))
  "A server of a test.
FUNCTION answers its calls; FRAMING is one of `llm-ert--framings'; DEFAULT
returns what to do about a message that FUNCTION does not answer; NOTE is
told the direction of each message, and the message; CLIENT is the process
of the last client; PROBLEM is an error of FUNCTION, or nil."
  function framing (default #'llm-ert--no-such-method) (note #'llm-ert--note)
  client problem (requests 0))

(defvar llm-ert--server nil
  "Server of the test that runs, or nil.")

(defvar llm-ert--framings
  '((headers llm-ert--next-with-headers llm-ert--with-headers
             llm-ert--read-json llm-ert--json-of)
    (lines llm-ert--next-line llm-ert--as-line
           llm-ert--read-json llm-ert--json-of))
  "Framings of messages, each with four functions.
The first gets bytes, and returns nil, or (TEXT . END): what stands in the
first message, and where that ends.  The second returns TEXT as it is sent.
The third reads TEXT, and the fourth writes a message as TEXT.")

(defun llm-ert--framed (framing number value)
  "Return what the function NUMBER, from 1 on, of FRAMING makes of VALUE."
  (funcall (nth number (assq framing llm-ert--framings)) value))

(defmacro llm-ert-with-server (function &rest body)
  "Run BODY with a JSON-RPC server whose calls FUNCTION answers.
FUNCTION gets a method, a symbol, and its parameters, a property list.
It returns what the server says, one of the following or a list of them:

  (result VALUE)            the result of the call
  (error CODE TEXT [DATA])  or its error
  (progress PLIST)          a notification of its progress
  (notify METHOD PLIST)     any notification
  (request METHOD PLIST)    a request to the client
  (raw TEXT)                TEXT as it stands, such as half a line
  (step NAME)               wait until `llm-ert-go-on'
  hang-up                   end the connection
  hang                      say nothing more

Nil stands for the error that there is no such method.

The server listens at `llm-ert-port'; `llm-ert-command' returns a command
for a client that starts a program.  BODY may begin with :framing and

  \\='headers  a message has a header, as in jsonrpc.el; this is the default
  \\='lines    a message is a line

The test fails if FUNCTION fails."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (llm-ert--split-keys body)))
    `(llm-ert--call-with-server ,function (lambda () ,@forms) ,@keys)))

(cl-defun llm-ert--call-with-server (answers function &key (framing 'headers))
  "Call FUNCTION with a server that ANSWERS, with messages in FRAMING."
  (llm-ert--call-serving
   (llm-ert--make-server :function answers :framing framing)
   (lambda ()
     (let ((llm-ert--said nil))
       (llm-ert--explaining #'llm-ert--messages-explained function)))))

(defun llm-ert--call-serving (server function)
  "Call FUNCTION while SERVER listens; fail if SERVER's function fails."
  (unless (assq (llm-ert--server-framing server) llm-ert--framings)
    (error "The framing must be one of %s" (mapcar #'car llm-ert--framings)))
  (let ((llm-ert--server server) (llm-ert--steps nil))
    (prog1 (llm-ert--with-peer
            (llm-ert--listen "llm-ert-server" (apply-partially #'llm-ert--heard server))
            (lambda () (llm-ert--server-problem server))
            function)
      (when (llm-ert--server-problem server)
        (ert-fail (llm-ert--server-problem server))))))

(defun llm-ert-server-says (&rest acts)
  "Have the server of the test say ACTS to its last client.
ACTS are as in `llm-ert-with-server'."
  (llm-ert-wait-for (llm-ert--server-client llm-ert--server)
    :message "no client has called")
  (llm-ert--act llm-ert--server (llm-ert--server-client llm-ert--server) nil acts))

;;;; Listening

(defun llm-ert--heard (server process chunk)
  "Have SERVER answer what PROCESS sent, of which CHUNK is the last part."
  (setf (llm-ert--server-client server) process)
  (llm-ert--each-message
   (llm-ert--server-framing server) process chunk
   (lambda (text)
     (let ((message (llm-ert--framed (llm-ert--server-framing server) 3 text)))
       (funcall (llm-ert--server-note server) 'sent message)
       (llm-ert--answer server process message)))))

(defun llm-ert--each-message (framing process chunk function)
  "Call FUNCTION with each message in FRAMING that CHUNK of PROCESS completes.
Stop when PROCESS has the property `hung-up'."
  (process-put process 'heard (concat (process-get process 'heard) chunk))
  (let (found)
    (while (and (not (process-get process 'hung-up))
                (setq found (llm-ert--framed framing 1 (process-get process 'heard))))
      (process-put process 'heard
                   (substring (process-get process 'heard) (cdr found)))
      (unless (string-blank-p (car found)) (funcall function (car found))))))

(defun llm-ert--next-with-headers (bytes)
  "Return the first message in BYTES, which has a header, and where it ends."
  (let ((case-fold-search t))
    (when (string-match "content-length: *\\([0-9]+\\)[^\0]*?\r\n\r\n" bytes)
      (let* ((start (match-end 0))
             (end (+ start (string-to-number (match-string 1 bytes)))))
        (when (<= end (length bytes))
          (cons (substring bytes start end) end))))))

(defun llm-ert--with-headers (json)
  "Return JSON as bytes with a header."
  (format "Content-Length: %d\r\n\r\n%s" (length json) json))

(defun llm-ert--next-line (bytes)
  "Return the first line of BYTES, and where it ends."
  (when-let* ((end (string-search "\n" bytes)))
    (cons (substring bytes 0 end) (1+ end))))

(defun llm-ert--as-line (json)
  "Return JSON as a line."
  (concat json "\n"))

(defun llm-ert--json-of (message)
  "Return MESSAGE as bytes, JSON."
  (encode-coding-string (json-encode (append '(:jsonrpc "2.0") message)) 'utf-8))

(defun llm-ert--answer (server process message)
  "Have SERVER answer MESSAGE of PROCESS."
  (when-let* ((method (plist-get message :method)))
    (let ((id (plist-get message :id)) (params (plist-get message :params)))
      (condition-case problem
          (llm-ert--act
           server process id
           (or (let ((said (funcall (llm-ert--server-function server)
                                    (if (symbolp method) method (intern method))
                                    params)))
                 (if (and said (or (symbolp said) (symbolp (car said)))
                          (not (memq (car-safe said) '(hang hang-up))))
                     (list said)
                   said))
               (funcall (llm-ert--server-default server) server message)))
        ((error ert-test-failed)
         (setf (llm-ert--server-problem server)
               (list 'server-failed problem :at method params))
         (when id
           (llm-ert--act server process id `((error -32603 ,(format "%S" problem))))))))))

(defun llm-ert--no-such-method (_server message)
  "Return the acts that say that MESSAGE calls no method."
  (when (plist-get message :id)
    `((error -32601 ,(format "the server has no method %s"
                             (plist-get message :method))))))

;;;; Speaking

(defun llm-ert--act (server process id acts)
  "Have SERVER do ACTS for the call ID of PROCESS, until one has to wait."
  (while acts
    (pcase (pop acts)
      (`(step ,name)
       (let ((rest acts))
         (setq acts nil)
         (llm-ert--stand-at
          name (lambda () (llm-ert--act server process id rest)))))
      ('hang (setq acts nil))
      ('hang-up
       (setq acts nil)
       (process-put process 'hung-up t)
       ;; Only our half ends.  If the whole connection did, the client could
       ;; still write to it, and a batch Emacs would die of SIGPIPE.
       (when (process-live-p process) (process-send-eof process)))
      (`(raw ,text)
       (llm-ert--send process (encode-coding-string text 'utf-8)))
      (act (llm-ert--tell server process (llm-ert--message-of server id act))))))

(defun llm-ert--message-of (server id act)
  "Return the message by which SERVER does ACT for the call ID."
  (pcase act
    (`(result ,value) (list :id id :result value))
    (`(error ,code ,text . ,data)
     (list :id id :error `(:code ,code :message ,text ,@(and data (list :data (car data))))))
    (`(progress ,plist)
     (list :method "progress" :params (append (list :id id) plist)))
    (`(notify ,method ,plist)
     (list :method (format "%s" method) :params plist))
    (`(request ,method ,plist)
     (list :id (format "server-%d" (cl-incf (llm-ert--server-requests server)))
           :method (format "%s" method) :params plist))
    (_ (error "A server cannot do %S" act))))

(defun llm-ert--tell (server process message)
  "Send MESSAGE to PROCESS, in the framing of SERVER."
  (funcall (llm-ert--server-note server) 'received message)
  (let ((framing (llm-ert--server-framing server)))
    (llm-ert--send process
                   (llm-ert--framed framing 2 (llm-ert--framed framing 4 message)))))

(provide 'llm-ert-server)
;;; llm-ert-server.el ends here
