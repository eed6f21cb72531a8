;;; contexture-ert-model.el --- Models written in Lisp  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-ert-with-model' runs a model that says what a test has it
;; say.  It listens on the loopback interface and speaks the interfaces of
;; OpenAI and Anthropic.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'json)
(require 'contexture-ert-exchange)
(eval-when-compile (require 'subr-x))


;;; A web server for tests

;; An HTTP server in this Emacs, on the loopback interface: it reads
;; requests, and writes answers whole or in chunks.  It knows nothing about
;; models.  Each connection serves one request.

(defun contexture-ert--http-listen (function)
  "Listen on a free port, and call FUNCTION with each request.
A request is a property list of :process, :verb, :path, and :body, which
is undecoded.  Return the process that listens."
  (make-network-process
   :name "contexture-ert-http" :server t :host "127.0.0.1" :service t
   :family 'ipv4 :coding 'binary :noquery t :sentinel #'ignore
   :filter (lambda (process chunk)
             (let ((case-fold-search t)
                   (heard (concat (process-get process 'heard) chunk)))
               (process-put process 'heard heard)
               (when-let* ((start (and (not (process-get process 'asked))
                                       (string-match "\r\n\r\n" heard)
                                       (match-end 0)))
                           (body
                            (contexture-ert--http-body process heard start)))
                 (process-put process 'asked t)
                 (string-match "\\`\\([A-Z]+\\) \\([^ ?]+\\)" heard)
                 (funcall function (list :process process
                                         :verb (match-string 1 heard)
                                         :path (match-string 2 heard)
                                         :body body)))))))

(defun contexture-ert--http-body (process heard start)
  "Return the body in HEARD, which begins at START, or nil if it is not whole.
If PROCESS expects \"100 Continue\" before it sends the body, send that."
  (let* ((head (substring heard 0 start))
         (length (if (string-match "^content-length: *\\([0-9]+\\)" head)
                     (string-to-number (match-string 1 head))
                   0)))
    (when (and (string-match "^expect: *100" head) (= (length heard) start))
      (contexture-ert--send process "HTTP/1.1 100 Continue\r\n\r\n"))
    (and (>= (length heard) (+ start length))
         (substring heard start (+ start length)))))

(defun contexture-ert--http-answer (process status body)
  "Answer PROCESS with STATUS, a number, and BODY, a text in JSON."
  (let ((bytes (encode-coding-string body 'utf-8)))
    (contexture-ert--send
     process (format "HTTP/1.1 %d Answer\r\nContent-Type: application/json\r\n\
Content-Length: %d\r\nConnection: close\r\n\r\n%s"
                     status (length bytes) bytes))
    (delete-process process)))

(defun contexture-ert--http-end (process)
  "End the answer to PROCESS."
  (contexture-ert--send process "0\r\n\r\n")
  (delete-process process))

;;; The interfaces of models in tests

;; Reads requests and writes answers as OpenAI's chat completions and
;; Anthropic's messages have them, streamed or whole.

(cl-defstruct (contexture-ert--turn (:constructor contexture-ert--make-turn)
                                    (:copier nil))
  "An answer that is being given to PROCESS through the interface API.
PIECES are still to be said.  SAID is what was said, the newest first.
ENDING says why it has stopped: `waits', `hang', `cut', `error' or nil.
BLOCK is the number of the open block and KIND its kind; BEGUN is
non-nil if the stream has begun."
  process api name stream pieces said usage stop ending begun (block -1) kind)

;;;; Reading

(defun contexture-ert--read-json (bytes)
  "Return the data in BYTES, JSON in UTF-8, with property lists and lists."
  (let ((json-object-type 'plist) (json-array-type 'list)
        (json-key-type 'keyword) (json-false nil) (json-null nil))
    (json-read-from-string (decode-coding-string bytes 'utf-8))))

(defun contexture-ert--shown-request (api body)
  "Return BODY, a request through the interface API, as in `contexture-ert-shown'."
  (let* ((messages (cl-mapcan (if (eq api 'openai)
                                  #'contexture-ert--openai-message
                                #'contexture-ert--anthropic-message)
                              (plist-get body :messages)))
         (system (cl-remove 'system messages :key #'contexture-ert--role
                            :test-not #'eq))
         (rest (cl-remove 'system messages :key #'contexture-ert--role)))
    (list :prompt (plist-get (car (last rest)) :content)
          :system (if (eq api 'openai)
                      (mapconcat (lambda (it) (plist-get it :content)) system "\n")
                    (contexture-ert--flat (plist-get body :system)))
          :messages rest
          :tools (mapcar (lambda (tool)
                           (or (plist-get tool :name)
                               (plist-get (plist-get tool :function) :name)))
                         (plist-get body :tools))
          :model (plist-get body :model) :stream (plist-get body :stream)
          :api api :body body)))

(defun contexture-ert--role (message)
  "Return the role of MESSAGE, a symbol."
  (plist-get message :role))

(defun contexture-ert--flat (content)
  "Return CONTENT, a text or a list of parts, as a text."
  (if (listp content)
      (mapconcat (lambda (part) (or (plist-get part :text) "")) content "")
    content))

(defun contexture-ert--openai-message (message)
  "Return MESSAGE of OpenAI's interface as a list of one message.
Its form is that of :messages in `contexture-ert-shown'."
  (let ((role (intern (plist-get message :role))))
    (list
     `( :role ,(if (eq role 'developer) 'system role)
        :content ,(contexture-ert--flat (plist-get message :content))
        ,@(when-let* ((calls (plist-get message :tool_calls)))
            (list :calls
                  (mapcar (lambda (call)
                            (let ((called (plist-get call :function)))
                              (contexture-ert--call (plist-get call :id)
                                                    (plist-get called :name)
                                                    (plist-get called :arguments))))
                          calls)))
        ,@(when-let* ((id (plist-get message :tool_call_id))) (list :call-id id))))))

(defun contexture-ert--call (id name arguments)
  "Return the call ID of the tool NAME with ARGUMENTS, JSON or data."
  (list :id id :name name
        :arguments (if (stringp arguments)
                       (condition-case nil
                           (contexture-ert--read-json
                            (encode-coding-string arguments 'utf-8))
                         (error arguments))
                     arguments)))

(defun contexture-ert--anthropic-message (message)
  "Return MESSAGE of Anthropic's interface as a list of messages.
Their form is that of :messages in `contexture-ert-shown'.  Each result of
a tool becomes a message with the role `tool'."
  (let* ((role (intern (plist-get message :role)))
         (content (plist-get message :content))
         (parts (if (stringp content) (list (list :type "text" :text content))
                  content))
         (of (lambda (type)
               (cl-remove type parts :test-not #'equal
                          :key (lambda (part) (plist-get part :type)))))
         (calls (mapcar (lambda (part)
                          (contexture-ert--call (plist-get part :id)
                                                (plist-get part :name)
                                                (plist-get part :input)))
                        (funcall of "tool_use"))))
    (append
     (mapcar (lambda (part)
               (list :role 'tool
                     :content (contexture-ert--flat (plist-get part :content))
                     :call-id (plist-get part :tool_use_id)))
             (funcall of "tool_result"))
     (when (or calls (funcall of "text"))
       (list `( :role ,role :content ,(contexture-ert--flat (funcall of "text"))
                ,@(and calls (list :calls calls))))))))

;;;; Writing

(defconst contexture-ert--statuses
  '((authentication 401 "authentication_error")
    (rate-limited 429 "rate_limit_error")
    (unavailable 503 "overloaded_error")
    (quota-exhausted 402 "billing_error")
    (context-too-long 400 "context_length_exceeded")
    (bad-request 400 "invalid_request_error"))
  "Kinds of errors, each with its HTTP status and its name in an answer.")

(defun contexture-ert--error-json (piece)
  "Return (STATUS . JSON) for PIECE, (error KIND TEXT)."
  (pcase-let* ((`(error ,kind ,text) piece)
               (`(,status ,name) (or (alist-get kind contexture-ert--statuses)
                                     (list kind "api_error"))))
    (unless (integerp status)
      (error "A model cannot fail with %S; use an HTTP status or one of %s" kind
             (mapcar #'car contexture-ert--statuses)))
    (when (and (eq kind 'context-too-long)
               (not (string-match-p "context" (or text ""))))
      (setq text (concat "maximum context length exceeded: " text)))
    (cons status
          (json-encode
           `( :type "error"
              :error ( :type ,name :code ,name
                       :message ,(or text "the test's model fails here")))))))

(defun contexture-ert--refuse (process piece)
  "Answer PROCESS with the error PIECE."
  (pcase-let ((`(,status . ,json) (contexture-ert--error-json piece)))
    (contexture-ert--http-answer process status json)))

(defun contexture-ert--fail (turn piece)
  "End TURN with the error PIECE: as a status, or in the stream if it has begun."
  (let ((process (contexture-ert--turn-process turn)))
    (if (not (contexture-ert--turn-begun turn))
        (contexture-ert--refuse process piece)
      (contexture-ert--event turn "error" (cdr (contexture-ert--error-json piece)))
      (contexture-ert--http-end process))))

(defun contexture-ert--say-piece (turn piece)
  "Say PIECE, neither a step nor an end, as part of TURN."
  (pcase piece
    (`(usage . ,usage) (setf (contexture-ert--turn-usage turn) usage))
    (`(stop ,reason) (setf (contexture-ert--turn-stop turn) reason))
    ((or (pred stringp) `(thought ,_) `(call . ,_))
     (push piece (contexture-ert--turn-said turn))
     (when (contexture-ert--turn-stream turn)
       (contexture-ert--flush turn)
       (if (eq (contexture-ert--turn-api turn) 'openai)
           (contexture-ert--openai-piece turn piece)
         (contexture-ert--anthropic-piece turn piece))))
    (_ (error "A model cannot say %S" piece))))

(defun contexture-ert--flush (turn)
  "Begin the stream of TURN if its answer is streamed and has not begun."
  (when (and (contexture-ert--turn-stream turn)
             (not (contexture-ert--turn-begun turn)))
    (setf (contexture-ert--turn-begun turn) t)
    (contexture-ert--send
     (contexture-ert--turn-process turn)
     "HTTP/1.1 200 Answer\r\nContent-Type: text/event-stream\r\n\
Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
    (when (eq (contexture-ert--turn-api turn) 'anthropic)
      (contexture-ert--anthropic-event
       turn "message_start"
       :message (list :id "msg-1" :type "message" :role "assistant"
                      :model (contexture-ert--turn-name turn) :content []
                      :usage '(:input_tokens 0 :output_tokens 0))))))

(defun contexture-ert--event (turn name json)
  "Send an event NAME with JSON in the stream of TURN, as a chunk.
OpenAI's interface has no names of events."
  (let ((bytes (encode-coding-string
                (format "%sdata: %s\n\n"
                        (if (eq (contexture-ert--turn-api turn) 'openai) ""
                          (format "event: %s\n" name))
                        json)
                'utf-8)))
    (contexture-ert--send (contexture-ert--turn-process turn)
                          (format "%x\r\n%s\r\n" (length bytes) bytes))))

(defun contexture-ert--finish (turn)
  "End TURN without an error; if it is not streamed, send the whole answer."
  (contexture-ert--flush turn)
  (let ((openai (eq (contexture-ert--turn-api turn) 'openai))
        (process (contexture-ert--turn-process turn)))
    (cond ((not (contexture-ert--turn-stream turn))
           (contexture-ert--http-answer
            process 200 (json-encode (if openai (contexture-ert--openai-whole turn)
                                       (contexture-ert--anthropic-whole turn)))))
          (t (if openai (contexture-ert--openai-end turn)
               (contexture-ert--anthropic-end turn))
             (contexture-ert--http-end process)))))

(defun contexture-ert--calls (turn)
  "Return the calls that TURN has made, in order, as (NAME JSON ID)."
  (cl-loop for piece in (reverse (contexture-ert--turn-said turn))
           for number from 0
           when (eq (car-safe piece) 'call)
           collect (pcase-let ((`(call ,name ,arguments ,id) (append piece '(nil))))
                     (list name
                           (cond ((stringp arguments) arguments)
                                 (arguments (json-encode arguments))
                                 (t "{}"))
                           (or id (format "call-%s-%d" name number))))))

(defun contexture-ert--text (turn kind)
  "Return the text that TURN has said, or with KIND `thought' has thought."
  (mapconcat (lambda (piece)
               (cond ((stringp piece) (if kind "" piece))
                     ((and kind (eq (car piece) kind)) (cadr piece))
                     (t "")))
             (reverse (contexture-ert--turn-said turn)) ""))

(defun contexture-ert--count (turn key)
  "Return the number of tokens that TURN reports under KEY."
  (or (plist-get (contexture-ert--turn-usage turn) key) 0))

;;;; OpenAI's interface

(defun contexture-ert--openai-chunk (turn choices &rest more)
  "Send CHOICES, and the pairs MORE, in the stream of TURN."
  (contexture-ert--event
   turn nil
   (json-encode `( :id "chatcmpl-1" :object "chat.completion.chunk" :created 0
                   :model ,(contexture-ert--turn-name turn)
                   :choices ,choices ,@more))))

(defun contexture-ert--openai-delta (turn delta &optional reason)
  "Send DELTA, and the REASON for the end, in the stream of TURN."
  (contexture-ert--openai-chunk
   turn (vector (list :index 0 :delta (or delta (make-hash-table))
                      :finish_reason reason))))

(defun contexture-ert--openai-piece (turn piece)
  "Send PIECE in the stream of TURN."
  (contexture-ert--openai-delta
   turn
   (pcase piece
     ((pred stringp) (list :role "assistant" :content piece))
     (`(thought ,text) (list :reasoning_content text))
     (_ (let ((calls (contexture-ert--calls turn)))
          (list :tool_calls
                (vector (append (list :index (1- (length calls)))
                                (contexture-ert--openai-call (car (last calls)))))))))))

(defun contexture-ert--openai-call (call)
  "Return CALL, a list of name, arguments and id, as OpenAI's interface has it."
  (list :id (nth 2 call) :type "function"
        :function (list :name (car call) :arguments (cadr call))))

(defun contexture-ert--openai-reason (turn)
  "Return the name of the reason for which TURN ends."
  (pcase (contexture-ert--turn-stop turn)
    ('nil (if (contexture-ert--calls turn) "tool_calls" "stop"))
    ('refused "content_filter")
    (reason (format "%s" reason))))

(defun contexture-ert--openai-usage (turn)
  "Return the tokens that TURN reports, as OpenAI's interface has them."
  (let ((input (contexture-ert--count turn :input))
        (output (contexture-ert--count turn :output)))
    (list :prompt_tokens input :completion_tokens output
          :total_tokens (+ input output)
          :prompt_tokens_details
          (list :cached_tokens (contexture-ert--count turn :cached)))))

(defun contexture-ert--openai-end (turn)
  "End the stream of TURN."
  (contexture-ert--openai-delta turn nil (contexture-ert--openai-reason turn))
  (when (contexture-ert--turn-usage turn)
    (contexture-ert--openai-chunk turn [] :usage (contexture-ert--openai-usage turn)))
  (contexture-ert--event turn nil "[DONE]"))

(defun contexture-ert--openai-whole (turn)
  "Return the whole answer of TURN."
  (let ((calls (contexture-ert--calls turn))
        (thought (contexture-ert--text turn 'thought)))
    `( :id "chatcmpl-1" :object "chat.completion" :created 0
       :model ,(contexture-ert--turn-name turn)
       :choices
       [( :index 0 :finish_reason ,(contexture-ert--openai-reason turn)
          :message
          ( :role "assistant" :content ,(contexture-ert--text turn nil)
            ,@(and (not (equal thought "")) (list :reasoning_content thought))
            ,@(and calls (list :tool_calls
                               (vconcat (mapcar #'contexture-ert--openai-call
                                                calls))))))]
       :usage ,(contexture-ert--openai-usage turn))))

;;;; Anthropic's interface

(defun contexture-ert--anthropic-event (turn type &rest more)
  "Send an event TYPE with the pairs MORE in the stream of TURN."
  (contexture-ert--event turn type (json-encode (append (list :type type) more))))

(defun contexture-ert--anthropic-piece (turn piece)
  "Send PIECE in the stream of TURN."
  (pcase piece
    ((pred stringp)
     (contexture-ert--anthropic-block turn 'text '(:type "text" :text ""))
     (contexture-ert--anthropic-delta turn (list :type "text_delta" :text piece)))
    (`(thought ,text)
     (contexture-ert--anthropic-block turn 'thought '(:type "thinking" :thinking ""))
     (contexture-ert--anthropic-delta
      turn (list :type "thinking_delta" :thinking text)))
    (_ (pcase-let ((`(,name ,arguments ,id)
                    (car (last (contexture-ert--calls turn)))))
         (contexture-ert--anthropic-block
          turn (list 'call)
          (list :type "tool_use" :id id :name name :input (make-hash-table)))
         (contexture-ert--anthropic-delta
          turn (list :type "input_json_delta" :partial_json arguments))))))

(defun contexture-ert--anthropic-block (turn kind block)
  "Begin BLOCK of KIND in the stream of TURN, unless one of KIND is open."
  (unless (eq kind (contexture-ert--turn-kind turn))
    (contexture-ert--anthropic-close turn)
    (setf (contexture-ert--turn-kind turn) kind)
    (contexture-ert--anthropic-event
     turn "content_block_start"
     :index (cl-incf (contexture-ert--turn-block turn)) :content_block block)))

(defun contexture-ert--anthropic-close (turn)
  "End the open block in the stream of TURN, if any."
  (when (contexture-ert--turn-kind turn)
    (setf (contexture-ert--turn-kind turn) nil)
    (contexture-ert--anthropic-event turn "content_block_stop"
                                     :index (contexture-ert--turn-block turn))))

(defun contexture-ert--anthropic-delta (turn delta)
  "Send DELTA for the open block in the stream of TURN."
  (contexture-ert--anthropic-event turn "content_block_delta"
                                   :index (contexture-ert--turn-block turn)
                                   :delta delta))

(defun contexture-ert--anthropic-reason (turn)
  "Return the name of the reason for which TURN ends."
  (pcase (contexture-ert--turn-stop turn)
    ('nil (if (contexture-ert--calls turn) "tool_use" "end_turn"))
    ('length "max_tokens")
    ('refused "refusal")
    (reason (format "%s" reason))))

(defun contexture-ert--anthropic-usage (turn)
  "Return the tokens that TURN reports, as Anthropic's interface has them."
  (let ((cached (contexture-ert--count turn :cached)))
    (list :input_tokens (- (contexture-ert--count turn :input) cached)
          :output_tokens (contexture-ert--count turn :output)
          :cache_read_input_tokens cached)))

(defun contexture-ert--anthropic-end (turn)
  "End the stream of TURN."
  (contexture-ert--anthropic-close turn)
  (contexture-ert--anthropic-event
   turn "message_delta"
   :delta (list :stop_reason (contexture-ert--anthropic-reason turn))
   :usage (contexture-ert--anthropic-usage turn))
  (contexture-ert--anthropic-event turn "message_stop"))

(defun contexture-ert--anthropic-whole (turn)
  "Return the whole answer of TURN."
  (list :id "msg-1" :type "message" :role "assistant"
        :model (contexture-ert--turn-name turn)
        :content
        (vconcat
         (let ((thought (contexture-ert--text turn 'thought)))
           (unless (equal thought "")
             (list (list :type "thinking" :thinking thought :signature "s"))))
         (let ((text (contexture-ert--text turn nil)))
           (unless (equal text "") (list (list :type "text" :text text))))
         (cl-loop for (name arguments id) in (contexture-ert--calls turn)
                  collect (list :type "tool_use" :id id :name name
                                :input (let ((json-object-type 'hash-table))
                                         (json-read-from-string arguments)))))
        :stop_reason (contexture-ert--anthropic-reason turn)
        :usage (contexture-ert--anthropic-usage turn)))

;;; Models written in Lisp

;; A model that says what a test has it say.  It listens on the loopback
;; interface and speaks the interfaces of OpenAI and Anthropic, so that
;; Contexture's server can ask it, as well as gptel, llm and others:
;;
;;     (contexture-ert-with-model
;;         '("Yes."
;;           (("Let me " "see.") (call "read_file" (:path "a.el")))
;;           (error rate-limited "too many requests"))
;;       (my-ask "Is it?"))

(cl-defstruct (contexture-ert--model (:constructor contexture-ert--make-model)
                                     (:copier nil))
  "A model of a test.
ANSWERS are those to come, or a function; SHOWN is what it was asked, the
newest first; REFUSED is the pair of the last request that it refused
and its error; PROBLEM says that the answers ran out, or is nil."
  listener answers shown refused problem)

(defvar contexture-ert--model nil
  "Model of the test that runs, or nil.")

(defvar contexture-ert--providers nil
  "Value of `contexture-providers' in tests.")

(defmacro contexture-ert-with-model (answers &rest body)
  "Run BODY with a model that says ANSWERS; return what it was shown.
Fail if the model is asked more often than there are ANSWERS.

ANSWERS is a list of answers, or a function that makes all of them.  An
answer is a string, a list of pieces, or a function that is called with
the request, as in `contexture-ert-shown', and returns one of these.  A
piece is one of

  \"TEXT\"                       text, which is streamed
  (thought TEXT)               what the model thinks
  (call NAME ARGUMENTS [ID])   a call of a tool; ARGUMENTS is a property
                               list, or a string as it stands
  (usage :input N :output N :cached N)
                               the tokens that the model counted
  (stop REASON)                a reason such as length for which it ends
  (error KIND TEXT)            an error; KIND is an HTTP status, or one of
                               authentication, rate-limited, unavailable,
                               quota-exhausted, context-too-long, bad-request
  (step NAME)                  wait until `contexture-ert-go-on'
  cut                          break off
  hang                         say nothing more, and never end

A client that repeats its request after an error that may pass, such as
rate-limited or 500, gets the error again: clients repeat by themselves.

Within BODY, Contexture's server has this model as a provider, as its
default.  For other packages, `contexture-ert-model-host' has the host
and port, and `contexture-ert-model-url' the base of the address."
  (declare (indent 1) (debug (form body)))
  `(contexture-ert--call-with-model ,answers (lambda () ,@body)))

(defun contexture-ert--call-with-model (answers function)
  "Call FUNCTION with a model that says ANSWERS; return what it was shown."
  (let* ((model (contexture-ert--make-model :answers answers))
         (contexture-ert--model model)
         (contexture-ert--steps nil)
         (process-environment (append '("no_proxy=127.0.0.1" "NO_PROXY=127.0.0.1")
                                      process-environment))
         (contexture-ert--providers (list (contexture-ert--listen model)))
         (contexture-providers contexture-ert--providers))
    (unwind-protect
        (progn
          (when (and (boundp 'contexture--connection) (contexture-running-p))
            (contexture-provider--tell-all contexture--connection))
          (contexture-ert--explaining
           (lambda () (contexture-ert--model-explanation model)) function))
      (let ((name (process-name (contexture-ert--model-listener model))))
        (dolist (process (process-list))
          (when (string-prefix-p name (process-name process))
            (delete-process process)))))
    (when (contexture-ert--model-problem model)
      (ert-fail (contexture-ert--model-problem model)))
    (contexture-ert-shown model)))

(defun contexture-ert--listen (model)
  "Have MODEL listen; return its entry for `contexture-providers'."
  (let ((listener (contexture-ert--http-listen
                   (apply-partially #'contexture-ert--asked model))))
    (setf (contexture-ert--model-listener model) listener)
    (list "model" :kind 'openai :model "model" :default t
          :base-url (concat (contexture-ert-model-url model) "/v1"))))

(defun contexture-ert-model-host (&optional model)
  "Return the host and port at which MODEL, or that of the test, listens."
  (format "127.0.0.1:%d"
          (process-contact (contexture-ert--model-listener
                            (or model contexture-ert--model
                                (error "There is no model in this test")))
                           :service)))

(defun contexture-ert-model-url (&optional model)
  "Return the base address of MODEL, or of that of the test, without a path.
The interfaces like OpenAI's and Anthropic's are both below \"/v1\"."
  (concat "http://" (contexture-ert-model-host model)))

(defun contexture-ert-shown (&optional model)
  "Return what MODEL, or that of the test, was shown, in order.
Each request is a property list of :prompt, the last text; :system;
:messages, each with :role, :content, :calls and :call-id; :tools, their
names; :model; :stream; :api, `openai' or `anthropic'; and :body, the
whole request as it came."
  (reverse (contexture-ert--model-shown (or model contexture-ert--model))))

(defun contexture-ert--model-explanation (model)
  "Return as text what MODEL was shown, for a test that failed."
  (contexture-ert--paragraph
   "The model was shown"
   (mapcar (lambda (shown)
             (format "%S" (contexture-ert--plist-without shown :body)))
           (contexture-ert-shown model))))

;;;; Answering

(defun contexture-ert--asked (model request)
  "Have MODEL answer the HTTP REQUEST."
  (let ((process (plist-get request :process))
        (api (let ((path (plist-get request :path)))
               (cond ((string-suffix-p "/chat/completions" path) 'openai)
                     ((string-suffix-p "/messages" path) 'anthropic)))))
    (cond (api (contexture-ert--answer-chat model process api request))
          ((string-suffix-p "/models" (plist-get request :path))
           (contexture-ert--http-answer
            process 200 "{\"object\": \"list\", \"data\": [{\"id\": \"model\"}]}"))
          (t (contexture-ert--http-answer process 404 "{\"error\": \"no such path\"}")))))

(defun contexture-ert--answer-chat (model process api request)
  "Have MODEL answer PROCESS, which sent REQUEST through the interface API."
  (let* ((body (contexture-ert--read-json (plist-get request :body)))
         (refused (contexture-ert--model-refused model))
         (shown (contexture-ert--shown-request api body)))
    (if (equal (car refused) (plist-get request :body))
        (contexture-ert--refuse process (cdr refused))
      (push shown (contexture-ert--model-shown model))
      (let ((pieces (contexture-ert--pieces
                     (contexture-ert--next-answer model shown))))
        (setf (contexture-ert--model-refused model)
              (and (let ((piece (car pieces)))
                     (and (eq (car-safe piece) 'error)
                          (let ((status
                                 (car (contexture-ert--error-json piece))))
                            (or (memq status '(408 409 429)) (>= status 500)))))
                   (cons (plist-get request :body) (car pieces))))
        (contexture-ert--play
         (contexture-ert--make-turn
          :process process :api api :pieces pieces
          :name (or (plist-get shown :model) "model")
          :stream (plist-get shown :stream)))))))

(defun contexture-ert--next-answer (model shown)
  "Return the next answer of MODEL to the request SHOWN; an error if none is left."
  (let* ((answers (contexture-ert--model-answers model))
         (answer (cond ((functionp answers) answers)
                       (answers (pop (contexture-ert--model-answers model)))
                       (t (setf (contexture-ert--model-problem model)
                                (list 'no-answer-left :shown (plist-get shown :prompt)
                                      :after (1- (length (contexture-ert-shown model)))))
                          '(error 400 "the test's model has no answer left")))))
    (condition-case problem
        (if (functionp answer) (funcall answer shown) answer)
      ((error ert-test-failed)
       (setf (contexture-ert--model-problem model)
             (list 'model-failed problem :shown (plist-get shown :prompt)))
       (list 'error 500 (format "the model's function failed: %S" problem))))))

(defun contexture-ert--pieces (answer)
  "Return ANSWER as a flat list of pieces."
  (cond ((or (stringp answer) (symbolp answer)) (and answer (list answer)))
        ((and (symbolp (car answer)) (not (memq (car answer) '(cut hang))))
         (list answer))
        (t (cl-mapcan #'contexture-ert--pieces answer))))

(defun contexture-ert--play (turn)
  "Say the pieces of TURN, until it ends or comes to a step."
  (let (piece)
    (while (setq piece (pop (contexture-ert--turn-pieces turn)))
      (pcase piece
        (`(step ,name)
         (contexture-ert--flush turn)
         (let ((rest (contexture-ert--turn-pieces turn)))
           (setf (contexture-ert--turn-pieces turn) nil
                 (contexture-ert--turn-ending turn) 'waits)
           (contexture-ert--stand-at
            name (lambda ()
                   (setf (contexture-ert--turn-pieces turn) rest
                         (contexture-ert--turn-ending turn) nil)
                   (contexture-ert--play turn)))))
        ((or 'cut 'hang)
         (contexture-ert--flush turn)
         (setf (contexture-ert--turn-pieces turn) nil
               (contexture-ert--turn-ending turn) piece))
        (`(error . ,_)
         (setf (contexture-ert--turn-pieces turn) nil
               (contexture-ert--turn-ending turn) 'error)
         (contexture-ert--fail turn piece))
        (_ (contexture-ert--say-piece turn piece))))
    (pcase (contexture-ert--turn-ending turn)
      ('cut (delete-process (contexture-ert--turn-process turn)))
      ('nil (contexture-ert--finish turn)))))

(provide 'contexture-ert-model)
;;; contexture-ert-model.el ends here
