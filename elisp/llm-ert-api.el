;;; llm-ert-api.el --- The interfaces of models in tests  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Reads requests and writes answers, streamed or whole, as the interfaces
;; of models have them: OpenAI's chat completions, responses and embeddings,
;; Anthropic's messages, Gemini's and Ollama's.  And the faults that servers
;; of models have.

;;; Code:

(require 'llm-ert-http)
(eval-when-compile (require 'subr-x))

(cl-defstruct (llm-ert--turn (:constructor llm-ert--make-turn) (:copier nil))
  "An answer that is being given to PROCESS through the interface API.
PIECES are still to be said.  SAID is what was said, the newest first.
ENDING says why it has stopped: `waits', `error', a fault or nil.
BLOCK is the number of the open block and KIND its kind; BEGUN is
non-nil if the stream has begun; WAYS are the faults that last."
  process api path name stream pieces said usage stop ending begun ways
  (block -1) kind)

(defun llm-ert--api-of (path)
  "Return (API . KIND) for PATH of a request, or nil if nothing is there.
KIND is `chat', `embeddings' or `models'."
  (let ((path (car (split-string path "?"))))
    (cl-loop for (regexp api . kind)
             in '(("/chat/completions\\'" openai . chat)
                  ("/responses\\'" responses . chat)
                  ("/messages\\'" anthropic . chat)
                  (":\\(?:streamG\\|g\\)enerateContent\\'" gemini . chat)
                  ("/api/\\(?:chat\\|generate\\)\\'" ollama . chat)
                  ("/embeddings\\'" openai . embeddings)
                  (":\\(?:batchE\\|e\\)mbedContents?\\'" gemini . embeddings)
                  ("/api/embed\\'" ollama . embeddings)
                  ("/\\(?:models/?\\|api/tags\\)\\'" openai . models))
             when (string-match-p regexp path) return (cons api kind))))

(cl-defgeneric llm-ert--api-shown (api body path)
  "Return what BODY, a request through API at PATH, shows a model.
That is :prompt, :system, :messages, :tools, :model, :stream and :texts, as
in `llm-ert-shown'.")

(cl-defgeneric llm-ert--api-begin (_api _turn)
  "Send what the stream of TURN through API begins with."
  nil)

(cl-defgeneric llm-ert--api-piece (api turn piece)
  "Send PIECE in the stream of TURN through API.")

(cl-defgeneric llm-ert--api-end (api turn)
  "Send what the stream of TURN through API ends with.")

(cl-defgeneric llm-ert--api-whole (api turn)
  "Return the whole answer of TURN through API, data.")

(cl-defgeneric llm-ert--api-error (_api _status name text)
  "Return the error NAME with TEXT and STATUS as API has it, data."
  (list :type "error" :error (list :type name :code name :message text)))

;;;; Reading

(defun llm-ert--shown (messages body &rest more)
  "Return what MESSAGES show, with the model and the stream of BODY, and MORE.
The system's texts among MESSAGES come before those in MORE under :system."
  (let* ((system-p (lambda (message) (eq (plist-get message :role) 'system)))
         (system (append (mapcar (lambda (it) (plist-get it :content))
                                 (cl-remove-if-not system-p messages))
                         (delq nil (list (plist-get more :system)))))
         (rest (cl-remove-if system-p messages)))
    (append (list :prompt (plist-get (car (last rest)) :content)
                  :system (string-join system "\n")
                  :messages rest)
            (llm-ert--plist-without more :system)
            (list :model (plist-get body :model)
                  :stream (plist-get body :stream)))))

(defun llm-ert--tool-names (tools)
  "Return the names of TOOLS, as OpenAI's, Anthropic's and Ollama's requests have."
  (mapcar (lambda (tool) (or (plist-get tool :name)
                             (plist-get (plist-get tool :function) :name)
                             (plist-get tool :type)))
          tools))

(defun llm-ert--flat (content)
  "Return CONTENT, a text or a list of parts, as a text."
  (if (listp content)
      (mapconcat (lambda (part) (or (plist-get part :text) "")) content "")
    content))

(defun llm-ert--role (name)
  "Return the role called NAME, a symbol."
  (pcase name
    ("developer" 'system)
    ("model" 'assistant)
    (_ (intern (or name "user")))))

(defun llm-ert--said-by (name content &optional calls call-id)
  "Return the message CONTENT of the role NAME, with CALLS and a CALL-ID."
  `( :role ,(llm-ert--role name) :content ,(llm-ert--flat content)
     ,@(and calls (list :calls calls))
     ,@(and call-id (list :call-id call-id))))

(defun llm-ert--call (id name arguments)
  "Return the call ID of the tool NAME with ARGUMENTS, JSON or data."
  (list :id id :name name
        :arguments (if (stringp arguments)
                       (condition-case nil
                           (llm-ert--read-json (encode-coding-string arguments 'utf-8))
                         (error arguments))
                     arguments)))

(defun llm-ert--function-call (call)
  "Return CALL, as OpenAI's and Ollama's messages have it, as `llm-ert--call' does."
  (let ((called (plist-get call :function)))
    (llm-ert--call (plist-get call :id) (plist-get called :name)
                   (plist-get called :arguments))))

;;;; Failing

(defconst llm-ert--statuses
  '((authentication 401 "authentication_error")
    (rate-limited 429 "rate_limit_error")
    (unavailable 503 "overloaded_error")
    (quota-exhausted 402 "billing_error")
    (context-too-long 400 "context_length_exceeded")
    (bad-request 400 "invalid_request_error"))
  "Kinds of errors, each with its HTTP status and its name in an answer.")

(defun llm-ert--status (piece)
  "Return the HTTP status of PIECE, (error KIND TEXT)."
  (let ((status (or (cadr (assq (nth 1 piece) llm-ert--statuses)) (nth 1 piece))))
    (unless (integerp status)
      (error "A model cannot fail with %S; use an HTTP status or one of %s"
             (nth 1 piece) (mapcar #'car llm-ert--statuses)))
    status))

(defun llm-ert--error-json (api piece)
  "Return PIECE, (error KIND TEXT), as JSON that API has for it."
  (let ((kind (nth 1 piece))
        (text (or (nth 2 piece) "the test's model fails here")))
    (when (and (eq kind 'context-too-long) (not (string-match-p "context" text)))
      (setq text (concat "maximum context length exceeded: " text)))
    (json-encode (llm-ert--api-error
                  api (llm-ert--status piece)
                  (or (nth 2 (assq kind llm-ert--statuses)) "api_error") text))))

(defun llm-ert--refuse (process api piece &optional masked)
  "Answer PROCESS with the error PIECE as API has it; if MASKED, with status 200."
  (llm-ert--http-answer process (if masked 200 (llm-ert--status piece))
                        (llm-ert--error-json api piece) nil
                        (when-let* ((seconds (plist-get (nthcdr 3 piece) :retry-after)))
                          (list (cons "Retry-After" (format "%s" seconds))))))

(defun llm-ert--fail (turn piece)
  "End TURN with the error PIECE: as a status, or in the stream if it has begun."
  (let ((process (llm-ert--turn-process turn)))
    (if (not (llm-ert--turn-begun turn))
        (llm-ert--refuse process (llm-ert--turn-api turn) piece
                         (llm-ert--way-p turn 'masked))
      (llm-ert--event turn "error" (llm-ert--error-json (llm-ert--turn-api turn) piece))
      (llm-ert--http-end process))))

;;;; Faults

(defconst llm-ert-faults
  '((cut "break off")
    (dropped "close the connection without an answer")
    (hang "say nothing more, and never end")
    (pings "send nothing but signs of life from now on, and never end")
    (unfinished "end without the events that say so")
    (open "end, but leave the connection open")
    (page "answer with status 502 and a page of HTML")
    (garbage "send an event that is no JSON")
    (null "send an event whose data are null")
    (late "begin the stream, so that an error after it comes with status 200")
    (masked "from now on, give errors the status 200")
    (whole "do not stream, though asked to")
    (torn "from now on, send a few bytes at a time")
    (halves "from now on, send characters beyond U+FFFF in two halves")
    (crlf "from now on, end lines by CR LF")
    (tight "from now on, write \"data:\" without a space after it")
    (comments "from now on, send a comment before each event")
    (scraps "from now on, send the arguments of a call in scraps")
    (unnumbered "from now on, send calls without their number")
    (objects "from now on, send arguments as an object, not as a text of JSON"))
  "Faults of servers of models: a word, and what the server does.
Some concern streams only, or what one interface has.")

(defconst llm-ert--ways
  '(masked whole torn halves crlf tight comments scraps unnumbered objects)
  "Faults that last until the end of an answer.")

(defun llm-ert--way-p (turn way)
  "Return non-nil if the fault WAY lasts in TURN."
  (memq way (llm-ert--turn-ways turn)))

(defun llm-ert--fault (turn word)
  "Do the fault WORD in TURN."
  (let ((process (llm-ert--turn-process turn)))
    (unless (assq word llm-ert-faults)
      (error "A model cannot do %S; faults are %s" word (mapcar #'car llm-ert-faults)))
    (cond
     ((memq word llm-ert--ways)
      (push word (llm-ert--turn-ways turn))
      (pcase word
        ('torn (process-put process 'torn t))
        ('whole (setf (llm-ert--turn-stream turn) nil))))
     (t
      (unless (memq word '(dropped page)) (llm-ert--flush turn))
      (pcase word
        ((or 'garbage 'null)
         (llm-ert--event turn "message" (if (eq word 'null) "null" "{\"choices\": [{")))
        ('late)
        (_ (setf (llm-ert--turn-ending turn) word)
           (pcase word
             ((or 'cut 'dropped) (llm-ert--http-close process))
             ('pings (llm-ert--ping turn))
             ('unfinished (llm-ert--http-end process))
             ('open (llm-ert--say-end turn)
                    (llm-ert--http-after process #'ignore))
             ('page (llm-ert--http-answer
                     process 502
                     "<html><head><title>502 Bad Gateway</title></head>\
<body><h1>502 Bad Gateway</h1></body></html>"
                     "text/html")))))))))

(defconst llm-ert--ping-delay 0.05
  "Seconds between two signs of life of a model that says nothing else.")

(defun llm-ert--ping (turn)
  "Send signs of life in the stream of TURN until the client hangs up."
  (when (process-live-p (llm-ert--turn-process turn))
    (if (eq (llm-ert--turn-api turn) 'anthropic)
        (llm-ert--event turn "ping" "{\"type\": \"ping\"}")
      (llm-ert--write turn ": ping\n\n"))
    (run-at-time llm-ert--ping-delay nil #'llm-ert--ping turn)))

;;;; Writing

(defun llm-ert--say-piece (turn piece)
  "Say PIECE, neither a step nor an end nor a fault, as part of TURN."
  (pcase piece
    (`(usage . ,usage) (setf (llm-ert--turn-usage turn) usage))
    (`(stop ,reason) (setf (llm-ert--turn-stop turn) reason))
    ((or (pred stringp) `(thought ,_) `(call . ,_))
     (push piece (llm-ert--turn-said turn))
     (when (llm-ert--turn-stream turn)
       (llm-ert--flush turn)
       (dolist (part (if (and (stringp piece) (llm-ert--way-p turn 'halves))
                         (llm-ert--halves piece)
                       (list piece)))
         (llm-ert--api-piece (llm-ert--turn-api turn) turn part))))
    (_ (error "A model cannot say %S" piece))))

(defun llm-ert--halves (text)
  "Return TEXT as a list of texts, between the halves of wide characters."
  (let ((from 0) parts)
    (cl-loop for char across text
             for at from 0
             when (> char #xffff)
             do (let ((code (- char #x10000)))
                  (push (concat (substring text from at)
                                (string (+ #xd800 (ash code -10))))
                        parts)
                  (push (string (+ #xdc00 (logand code #x3ff))) parts)
                  (setq from (1+ at))))
    (nreverse (if (< from (length text)) (cons (substring text from) parts) parts))))

(defun llm-ert--flush (turn)
  "Begin the stream of TURN if its answer is streamed and has not begun."
  (when (and (llm-ert--turn-stream turn)
             (not (llm-ert--turn-begun turn)))
    (setf (llm-ert--turn-begun turn) t)
    (llm-ert--http-begin (llm-ert--turn-process turn) 200
                         (pcase (llm-ert--turn-stream turn)
                           ('lines "application/x-ndjson")
                           ('array "application/json")
                           (_ "text/event-stream")))
    (llm-ert--api-begin (llm-ert--turn-api turn) turn)))

(defun llm-ert--event (turn name json)
  "Send an event with JSON in the stream of TURN; NAME, or nil, is its name."
  (let ((json (replace-regexp-in-string
               ;; Halves of characters are no characters in UTF-8.
               "[\ud800-\udfff]" (lambda (half) (format "\\\\u%04x" (aref half 0)))
               json t)))
    (pcase (llm-ert--turn-stream turn)
      ('lines (llm-ert--write turn (concat json "\n")))
      ('array (llm-ert--write turn (concat (if (llm-ert--turn-kind turn) ",\n" "[") json))
              (setf (llm-ert--turn-kind turn) 'array))
      (_ (when (llm-ert--way-p turn 'comments)
           (llm-ert--write turn ": keep-alive\n\n"))
         (llm-ert--write turn (format (if (llm-ert--way-p turn 'tight)
                                          "%sdata:%s\n\n"
                                        "%sdata: %s\n\n")
                                      (if name (format "event: %s\n" name) "")
                                      json))))))

(defun llm-ert--write (turn text)
  "Send TEXT in the stream of TURN."
  (llm-ert--http-write
   (llm-ert--turn-process turn)
   (encode-coding-string (if (llm-ert--way-p turn 'crlf)
                             (string-replace "\n" "\r\n" text)
                           text)
                         'utf-8)))

(defun llm-ert--say-end (turn)
  "Send what the stream of TURN ends with."
  (llm-ert--api-end (llm-ert--turn-api turn) turn)
  (when (eq (llm-ert--turn-stream turn) 'array)
    (llm-ert--write turn "]")))

(defun llm-ert--finish (turn)
  "End TURN without an error; if it is not streamed, send the whole answer."
  (llm-ert--flush turn)
  (let ((process (llm-ert--turn-process turn)))
    (cond ((llm-ert--turn-stream turn)
           (llm-ert--say-end turn)
           (llm-ert--http-end process))
          (t (llm-ert--http-answer
              process 200
              (json-encode (llm-ert--api-whole (llm-ert--turn-api turn) turn)))))))

(defun llm-ert--calls (turn)
  "Return the calls that TURN has made, in order, as (NAME JSON ID)."
  (cl-loop for piece in (reverse (llm-ert--turn-said turn))
           for number from 0
           when (eq (car-safe piece) 'call)
           collect (pcase-let ((`(,name ,arguments ,id) (append (cdr piece) '(nil nil))))
                     (list name
                           (cond ((stringp arguments) arguments)
                                 (arguments (json-encode arguments))
                                 (t "{}"))
                           (or id (format "call-%s-%d" name number))))))

(defun llm-ert--text (turn kind)
  "Return the text that TURN has said, or with KIND `thought' has thought."
  (mapconcat (lambda (piece)
               (cond ((stringp piece) (if kind "" piece))
                     ((and kind (eq (car piece) kind)) (cadr piece))
                     (t "")))
             (reverse (llm-ert--turn-said turn)) ""))

(defun llm-ert--count (turn key)
  "Return the number of tokens that TURN reports under KEY."
  (or (plist-get (llm-ert--turn-usage turn) key) 0))

(defun llm-ert--reason (turn calls end length refused)
  "Return the name of the reason for which TURN ends.
If the answer gives a reason, that is `length', `refused' or another
one.  LENGTH and REFUSED are the names of the first two; another reason
is its own name.  Without a reason, the name is CALLS if TURN made
calls, else END."
  (pcase (llm-ert--turn-stop turn)
    ('nil (if (llm-ert--calls turn) calls end))
    ('length length)
    ('refused refused)
    (reason (format "%s" reason))))

;;;; OpenAI's chat completions

(cl-defmethod llm-ert--api-shown ((_api (eql 'openai)) body _path)
  "Return what BODY shows a model."
  (llm-ert--shown
   (mapcar (lambda (message)
             (llm-ert--said-by (plist-get message :role) (plist-get message :content)
                               (mapcar #'llm-ert--function-call
                                       (plist-get message :tool_calls))
                               (plist-get message :tool_call_id)))
           (plist-get body :messages))
   body :tools (llm-ert--tool-names (plist-get body :tools))))

(defun llm-ert--openai-chunk (turn choices &rest more)
  "Send CHOICES, and the pairs MORE, in the stream of TURN."
  (llm-ert--event
   turn nil
   (json-encode `( :id "chatcmpl-1" :object "chat.completion.chunk" :created 0
                   :model ,(llm-ert--turn-name turn)
                   :choices ,choices ,@more))))

(defun llm-ert--openai-delta (turn delta &optional reason)
  "Send DELTA, and the REASON for the end, in the stream of TURN."
  (llm-ert--openai-chunk
   turn (vector (list :index 0 :delta (or delta (make-hash-table))
                      :finish_reason reason))))

(cl-defmethod llm-ert--api-piece ((_api (eql 'openai)) turn piece)
  "Send PIECE in the stream of TURN."
  (pcase piece
    ((pred stringp) (llm-ert--openai-delta turn (list :role "assistant" :content piece)))
    (`(thought ,text) (llm-ert--openai-delta turn (list :reasoning_content text)))
    (_ (let* ((calls (llm-ert--calls turn))
              (call (car (last calls)))
              (number (unless (llm-ert--way-p turn 'unnumbered)
                        (list :index (1- (length calls)))))
              (say (lambda (part)
                     (llm-ert--openai-delta
                      turn (list :tool_calls (vector (append number part)))))))
         (if (not (llm-ert--way-p turn 'scraps))
             (funcall say (llm-ert--openai-call turn call))
           (funcall say (llm-ert--openai-call turn (list (car call) "" (nth 2 call))))
           (dolist (scrap (llm-ert--scraps-of (cadr call)))
             (funcall say (list :function (list :arguments scrap)))))))))

(defun llm-ert--scraps-of (json)
  "Return JSON, a text, in scraps."
  (mapcar #'concat (seq-partition json 3)))

(defun llm-ert--openai-call (turn call)
  "Return CALL of TURN, a list of name, arguments and id, as OpenAI has it."
  (list :id (nth 2 call) :type "function"
        :function (list :name (car call)
                        :arguments (if (llm-ert--way-p turn 'objects)
                                       (llm-ert--object (cadr call))
                                     (cadr call)))))

(defun llm-ert--openai-reason (turn)
  "Return the name of the reason for which TURN ends."
  (llm-ert--reason turn "tool_calls" "stop" "length" "content_filter"))

(defun llm-ert--openai-usage (turn)
  "Return the tokens that TURN reports, as OpenAI's interface has them."
  (let ((input (llm-ert--count turn :input))
        (output (llm-ert--count turn :output)))
    (list :prompt_tokens input :completion_tokens output
          :total_tokens (+ input output)
          :prompt_tokens_details
          (list :cached_tokens (llm-ert--count turn :cached)))))

(cl-defmethod llm-ert--api-end ((_api (eql 'openai)) turn)
  "End the stream of TURN."
  (llm-ert--openai-delta turn nil (llm-ert--openai-reason turn))
  (when (llm-ert--turn-usage turn)
    (llm-ert--openai-chunk turn [] :usage (llm-ert--openai-usage turn)))
  (llm-ert--event turn nil "[DONE]"))

(cl-defmethod llm-ert--api-whole ((_api (eql 'openai)) turn)
  "Return the whole answer of TURN."
  (let ((calls (llm-ert--calls turn))
        (thought (llm-ert--text turn 'thought)))
    `( :id "chatcmpl-1" :object "chat.completion" :created 0
       :model ,(llm-ert--turn-name turn)
       :choices
       [( :index 0 :finish_reason ,(llm-ert--openai-reason turn)
          :message
          ( :role "assistant" :content ,(llm-ert--text turn nil)
            ,@(and (not (equal thought "")) (list :reasoning_content thought))
            ,@(and calls (list :tool_calls
                               (vconcat (mapcar (apply-partially #'llm-ert--openai-call
                                                                 turn)
                                                calls))))))]
       :usage ,(llm-ert--openai-usage turn))))

;;;; OpenAI's responses

(cl-defmethod llm-ert--api-shown ((_api (eql 'responses)) body _path)
  "Return what BODY shows a model."
  (let ((input (plist-get body :input)))
    (llm-ert--shown
     (cl-loop for item in (if (stringp input) (list (list :role "user" :content input)) input)
              collect
              (pcase (plist-get item :type)
                ("function_call"
                 (llm-ert--said-by "assistant" ""
                                   (list (llm-ert--call (plist-get item :call_id)
                                                        (plist-get item :name)
                                                        (plist-get item :arguments)))))
                ("function_call_output"
                 (llm-ert--said-by "tool" (plist-get item :output) nil
                                   (plist-get item :call_id)))
                (_ (llm-ert--said-by (or (plist-get item :role) "assistant")
                                     (plist-get item :content)))))
     body :tools (llm-ert--tool-names (plist-get body :tools))
     :system (plist-get body :instructions))))

(defun llm-ert--responses-event (turn type &rest more)
  "Send an event TYPE with the pairs MORE in the stream of TURN."
  (llm-ert--event turn type (json-encode (append (list :type type) more))))

(cl-defmethod llm-ert--api-begin ((_api (eql 'responses)) turn)
  "Begin the stream of TURN."
  (llm-ert--responses-event
   turn "response.created"
   :response (list :id "resp-1" :object "response" :status "in_progress"
                   :model (llm-ert--turn-name turn) :output [])))

(cl-defmethod llm-ert--api-piece ((_api (eql 'responses)) turn piece)
  "Send PIECE in the stream of TURN."
  (pcase piece
    ((pred stringp)
     (unless (eq (llm-ert--turn-kind turn) 'text)
       (llm-ert--responses-item turn 'text
                                '( :type "message" :id "msg-1" :role "assistant"
                                   :status "in_progress" :content []))
       (llm-ert--responses-event
        turn "response.content_part.added" :item_id "msg-1"
        :output_index (llm-ert--turn-block turn) :content_index 0
        :part '(:type "output_text" :text "" :annotations [])))
     (llm-ert--responses-event
      turn "response.output_text.delta" :item_id "msg-1"
      :output_index (llm-ert--turn-block turn) :content_index 0 :delta piece))
    (`(thought ,text)
     (unless (eq (llm-ert--turn-kind turn) 'thought)
       (llm-ert--responses-item turn 'thought '(:type "reasoning" :id "rs-1" :summary [])))
     (llm-ert--responses-event
      turn "response.reasoning_summary_text.delta" :item_id "rs-1"
      :output_index (llm-ert--turn-block turn) :summary_index 0 :delta text))
    (_ (let ((call (car (last (llm-ert--calls turn)))))
         (llm-ert--responses-item
          turn call (llm-ert--responses-call (list (car call) "" (nth 2 call))))
         (dolist (scrap (if (llm-ert--way-p turn 'scraps) (llm-ert--scraps-of (cadr call))
                          (list (cadr call))))
           (llm-ert--responses-event
            turn "response.function_call_arguments.delta" :item_id (nth 2 call)
            :output_index (llm-ert--turn-block turn) :delta scrap))
         (llm-ert--responses-event
          turn "response.function_call_arguments.done" :item_id (nth 2 call)
          :output_index (llm-ert--turn-block turn) :arguments (cadr call))))))

(defun llm-ert--responses-call (call)
  "Return CALL, a list of name, arguments and id, as the responses have it."
  (list :type "function_call" :id (nth 2 call) :call_id (nth 2 call)
        :name (car call) :arguments (cadr call) :status "completed"))

(defun llm-ert--responses-item (turn kind item)
  "Close the open item in the stream of TURN, and begin ITEM of KIND."
  (llm-ert--responses-close turn)
  (setf (llm-ert--turn-kind turn) kind)
  (llm-ert--responses-event turn "response.output_item.added"
                            :output_index (cl-incf (llm-ert--turn-block turn))
                            :item item))

(defun llm-ert--responses-close (turn)
  "End the open item in the stream of TURN, if any."
  (let ((kind (llm-ert--turn-kind turn)))
    (setf (llm-ert--turn-kind turn) nil)
    (when kind
      (when (eq kind 'text)
        (llm-ert--responses-event
         turn "response.output_text.done" :item_id "msg-1"
         :output_index (llm-ert--turn-block turn) :content_index 0
         :text (llm-ert--text turn nil)))
      (llm-ert--responses-event
       turn "response.output_item.done" :output_index (llm-ert--turn-block turn)
       :item (pcase kind
               ('text (llm-ert--responses-message turn))
               ('thought (llm-ert--responses-thought turn))
               (_ (llm-ert--responses-call kind)))))))

(defun llm-ert--responses-message (turn)
  "Return the text of TURN as an item."
  (list :type "message" :id "msg-1" :role "assistant" :status "completed"
        :content (vector (list :type "output_text" :text (llm-ert--text turn nil)
                               :annotations []))))

(defun llm-ert--responses-thought (turn)
  "Return what TURN has thought as an item."
  (list :type "reasoning" :id "rs-1"
        :summary (vector (list :type "summary_text" :text (llm-ert--text turn 'thought)))))

(cl-defmethod llm-ert--api-end ((_api (eql 'responses)) turn)
  "End the stream of TURN."
  (llm-ert--responses-close turn)
  (let ((whole (llm-ert--api-whole 'responses turn)))
    (llm-ert--responses-event
     turn (concat "response." (plist-get whole :status)) :response whole)))

(cl-defmethod llm-ert--api-whole ((_api (eql 'responses)) turn)
  "Return the whole answer of TURN."
  (let ((reason (llm-ert--reason turn nil nil "max_output_tokens" "content_filter"))
        (input (llm-ert--count turn :input))
        (output (llm-ert--count turn :output)))
    `( :id "resp-1" :object "response" :created_at 0
       :status ,(if reason "incomplete" "completed")
       ,@(and reason (list :incomplete_details (list :reason reason)))
       :model ,(llm-ert--turn-name turn)
       :output ,(vconcat (unless (equal (llm-ert--text turn 'thought) "")
                           (list (llm-ert--responses-thought turn)))
                         (unless (equal (llm-ert--text turn nil) "")
                           (list (llm-ert--responses-message turn)))
                         (mapcar #'llm-ert--responses-call (llm-ert--calls turn)))
       :usage ( :input_tokens ,input :output_tokens ,output
                :total_tokens ,(+ input output)
                :input_tokens_details (:cached_tokens ,(llm-ert--count turn :cached))))))

;;;; Anthropic's messages

(cl-defmethod llm-ert--api-shown ((_api (eql 'anthropic)) body _path)
  "Return what BODY shows a model."
  (llm-ert--shown
   (cl-mapcan #'llm-ert--anthropic-message (plist-get body :messages))
   body :tools (llm-ert--tool-names (plist-get body :tools))
   :system (llm-ert--flat (plist-get body :system))))

(defun llm-ert--anthropic-message (message)
  "Return MESSAGE as a list of messages.
Each result of a tool becomes a message with the role `tool'."
  (let* ((content (plist-get message :content))
         (parts (if (stringp content) (list (list :type "text" :text content))
                  content))
         (of (lambda (type)
               (cl-remove type parts :test-not #'equal
                          :key (lambda (part) (plist-get part :type)))))
         (calls (mapcar (lambda (part)
                          (llm-ert--call (plist-get part :id)
                                         (plist-get part :name)
                                         (plist-get part :input)))
                        (funcall of "tool_use"))))
    (append
     (mapcar (lambda (part)
               (llm-ert--said-by "tool" (plist-get part :content) nil
                                 (plist-get part :tool_use_id)))
             (funcall of "tool_result"))
     (when (or calls (funcall of "text"))
       (list (llm-ert--said-by (plist-get message :role) (funcall of "text") calls))))))

(defun llm-ert--anthropic-event (turn type &rest more)
  "Send an event TYPE with the pairs MORE in the stream of TURN."
  (llm-ert--event turn type (json-encode (append (list :type type) more))))

(cl-defmethod llm-ert--api-begin ((_api (eql 'anthropic)) turn)
  "Begin the stream of TURN."
  (llm-ert--anthropic-event
   turn "message_start"
   :message (list :id "msg-1" :type "message" :role "assistant"
                  :model (llm-ert--turn-name turn) :content []
                  :usage '(:input_tokens 0 :output_tokens 0))))

(cl-defmethod llm-ert--api-piece ((_api (eql 'anthropic)) turn piece)
  "Send PIECE in the stream of TURN."
  (pcase piece
    ((pred stringp)
     (llm-ert--anthropic-block turn 'text '(:type "text" :text ""))
     (llm-ert--anthropic-delta turn (list :type "text_delta" :text piece)))
    (`(thought ,text)
     (llm-ert--anthropic-block turn 'thought '(:type "thinking" :thinking ""))
     (llm-ert--anthropic-delta
      turn (list :type "thinking_delta" :thinking text)))
    (_ (pcase-let ((`(,name ,arguments ,id) (car (last (llm-ert--calls turn)))))
         (llm-ert--anthropic-block
          turn (list 'call)
          (list :type "tool_use" :id id :name name
                :input (if (llm-ert--way-p turn 'objects) (llm-ert--object arguments)
                         (make-hash-table))))
         (unless (llm-ert--way-p turn 'objects)
           (dolist (scrap (if (llm-ert--way-p turn 'scraps)
                              (llm-ert--scraps-of arguments)
                            (list arguments)))
             (llm-ert--anthropic-delta
              turn (list :type "input_json_delta" :partial_json scrap))))))))

(defun llm-ert--anthropic-block (turn kind block)
  "Begin BLOCK of KIND in the stream of TURN, unless one of KIND is open."
  (unless (eq kind (llm-ert--turn-kind turn))
    (llm-ert--anthropic-close turn)
    (setf (llm-ert--turn-kind turn) kind)
    (llm-ert--anthropic-event
     turn "content_block_start"
     :index (cl-incf (llm-ert--turn-block turn)) :content_block block)))

(defun llm-ert--anthropic-close (turn)
  "End the open block in the stream of TURN, if any."
  (when (llm-ert--turn-kind turn)
    (setf (llm-ert--turn-kind turn) nil)
    (llm-ert--anthropic-event turn "content_block_stop"
                              :index (llm-ert--turn-block turn))))

(defun llm-ert--anthropic-delta (turn delta)
  "Send DELTA for the open block in the stream of TURN."
  (llm-ert--anthropic-event turn "content_block_delta"
                            :index (llm-ert--turn-block turn) :delta delta))

(defun llm-ert--anthropic-reason (turn)
  "Return the name of the reason for which TURN ends."
  (llm-ert--reason turn "tool_use" "end_turn" "max_tokens" "refusal"))

(defun llm-ert--anthropic-usage (turn)
  "Return the tokens that TURN reports, as Anthropic's interface has them."
  (let ((cached (llm-ert--count turn :cached)))
    (list :input_tokens (- (llm-ert--count turn :input) cached)
          :output_tokens (llm-ert--count turn :output)
          :cache_read_input_tokens cached)))

(cl-defmethod llm-ert--api-end ((_api (eql 'anthropic)) turn)
  "End the stream of TURN."
  (llm-ert--anthropic-close turn)
  (llm-ert--anthropic-event
   turn "message_delta"
   :delta (list :stop_reason (llm-ert--anthropic-reason turn))
   :usage (llm-ert--anthropic-usage turn))
  (llm-ert--anthropic-event turn "message_stop"))

(cl-defmethod llm-ert--api-whole ((_api (eql 'anthropic)) turn)
  "Return the whole answer of TURN."
  (list :id "msg-1" :type "message" :role "assistant"
        :model (llm-ert--turn-name turn)
        :content
        (vconcat
         (let ((thought (llm-ert--text turn 'thought)))
           (unless (equal thought "")
             (list (list :type "thinking" :thinking thought :signature "s"))))
         (let ((text (llm-ert--text turn nil)))
           (unless (equal text "") (list (list :type "text" :text text))))
         (cl-loop for (name arguments id) in (llm-ert--calls turn)
                  collect (list :type "tool_use" :id id :name name
                                :input (llm-ert--object arguments))))
        :stop_reason (llm-ert--anthropic-reason turn)
        :usage (llm-ert--anthropic-usage turn)))

;;;; Gemini's contents

(cl-defmethod llm-ert--api-shown ((_api (eql 'gemini)) body path)
  "Return what BODY, a request at PATH, shows a model."
  (string-match "/models/\\([^:]+\\):\\(stream\\)?" path)
  (let ((shown (llm-ert--shown
                (cl-mapcan #'llm-ert--gemini-message (plist-get body :contents))
                (list :model (match-string 1 path)
                      :stream (and (match-string 2 path)
                                   (if (string-match-p "[?&]alt=sse" path) t 'array)))
                :tools (cl-loop for tool in (plist-get body :tools)
                                append (llm-ert--tool-names
                                        (or (plist-get tool :functionDeclarations)
                                            (plist-get tool :function_declarations))))
                :system (llm-ert--flat
                         (plist-get (or (plist-get body :systemInstruction)
                                        (plist-get body :system_instruction))
                                    :parts)))))
    shown))

(defun llm-ert--gemini-message (content)
  "Return CONTENT as a list of messages, with each result of a tool by itself."
  (let ((parts (plist-get content :parts)))
    (append
     (cl-loop for part in parts
              for result = (plist-get part :functionResponse)
              when result
              collect (llm-ert--said-by
                       "tool"
                       (let ((response (plist-get result :response)))
                         (if (stringp (cadr response)) (cadr response)
                           (json-encode response)))
                       nil (plist-get result :name)))
     (let ((calls (cl-loop for part in parts
                           for call = (plist-get part :functionCall)
                           when call collect (llm-ert--call (plist-get call :id)
                                                            (plist-get call :name)
                                                            (plist-get call :args)))))
       (when (or calls (cl-some (lambda (part) (plist-get part :text)) parts))
         (list (llm-ert--said-by (plist-get content :role) parts calls)))))))

(defun llm-ert--gemini-answer (turn parts &optional reason)
  "Return PARTS as a part of the answer of TURN, with the REASON for its end."
  (let ((input (llm-ert--count turn :input)) (output (llm-ert--count turn :output)))
    `( :candidates [( :index 0
                      :content (:role "model" :parts ,(vconcat parts))
                      ,@(and reason (list :finishReason reason)))]
       :modelVersion ,(llm-ert--turn-name turn)
       :usageMetadata ( :promptTokenCount ,input :candidatesTokenCount ,output
                        :totalTokenCount ,(+ input output)
                        :cachedContentTokenCount ,(llm-ert--count turn :cached)))))

(defun llm-ert--gemini-parts (turn pieces)
  "Return PIECES that TURN says as parts."
  (let ((calls (llm-ert--calls turn)))
    (cl-loop for piece in pieces
             collect (pcase piece
                       ((pred stringp) (list :text piece))
                       (`(thought ,text) (list :text text :thought t))
                       (_ (list :functionCall
                                (list :name (cadr piece)
                                      :args (llm-ert--object
                                             (cadr (assoc (cadr piece)
                                                          (reverse calls)))))))))))

(defun llm-ert--gemini-reason (turn)
  "Return the name of the reason for which TURN ends."
  (llm-ert--reason turn "STOP" "STOP" "MAX_TOKENS" "SAFETY"))

(cl-defmethod llm-ert--api-piece ((_api (eql 'gemini)) turn piece)
  "Send PIECE in the stream of TURN."
  (llm-ert--event turn nil (json-encode (llm-ert--gemini-answer
                                         turn (llm-ert--gemini-parts turn (list piece))))))

(cl-defmethod llm-ert--api-end ((_api (eql 'gemini)) turn)
  "End the stream of TURN."
  (llm-ert--event turn nil
                  (json-encode (llm-ert--gemini-answer
                                turn (list '(:text "")) (llm-ert--gemini-reason turn)))))

(cl-defmethod llm-ert--api-whole ((_api (eql 'gemini)) turn)
  "Return the whole answer of TURN."
  (let ((thought (llm-ert--text turn 'thought)) (text (llm-ert--text turn nil)))
    (llm-ert--gemini-answer
     turn (llm-ert--gemini-parts
           turn (append (unless (equal thought "") (list (list 'thought thought)))
                        (unless (equal text "") (list text))
                        (cl-remove 'call (reverse (llm-ert--turn-said turn))
                                   :key #'car-safe :test-not #'eq)))
     (llm-ert--gemini-reason turn))))

(cl-defmethod llm-ert--api-error ((_api (eql 'gemini)) status name text)
  "Return the error NAME with TEXT and STATUS."
  (list :error (list :code status :message text :status (upcase name))))

;;;; Ollama's chat and generate

(cl-defmethod llm-ert--api-shown ((_api (eql 'ollama)) body _path)
  "Return what BODY shows a model.  Without a :stream, Ollama streams."
  (let ((shown (llm-ert--shown
                (if (plist-member body :prompt)
                    (list (llm-ert--said-by "user" (plist-get body :prompt)))
                  (mapcar (lambda (message)
                            (llm-ert--said-by (plist-get message :role)
                                              (plist-get message :content)
                                              (mapcar #'llm-ert--function-call
                                                      (plist-get message :tool_calls))
                                              (plist-get message :tool_name)))
                          (plist-get body :messages)))
                body :tools (llm-ert--tool-names (plist-get body :tools))
                :system (plist-get body :system))))
    (plist-put shown :stream (and (or (plist-get body :stream)
                                      (not (plist-member body :stream)))
                                  'lines))))

(defun llm-ert--ollama-answer (turn text thought calls &optional done)
  "Return TEXT, THOUGHT and CALLS as an answer of TURN; if DONE, as its last one."
  `( :model ,(llm-ert--turn-name turn) :created_at "2026-01-01T00:00:00Z"
     ,@(if (string-search "/api/generate" (llm-ert--turn-path turn))
           (list :response text)
         `(:message
           ( :role "assistant" :content ,text
             ,@(and (not (equal thought "")) (list :thinking thought))
             ,@(and calls
                    (list :tool_calls
                          (vconcat
                           (mapcar (lambda (call)
                                     (list :id (nth 2 call)
                                           :function
                                           (list :name (car call)
                                                 :arguments
                                                 (llm-ert--object (cadr call)))))
                                   calls)))))))
     :done ,(or done :json-false)
     ,@(and done
            (list :done_reason (llm-ert--reason turn "stop" "stop" "length" "stop")
                  :prompt_eval_count (llm-ert--count turn :input)
                  :eval_count (llm-ert--count turn :output)))))

(cl-defmethod llm-ert--api-piece ((_api (eql 'ollama)) turn piece)
  "Send PIECE in the stream of TURN."
  (llm-ert--event
   turn nil
   (json-encode
    (pcase piece
      ((pred stringp) (llm-ert--ollama-answer turn piece "" nil))
      (`(thought ,text) (llm-ert--ollama-answer turn "" text nil))
      (_ (llm-ert--ollama-answer turn "" "" (last (llm-ert--calls turn))))))))

(cl-defmethod llm-ert--api-end ((_api (eql 'ollama)) turn)
  "End the stream of TURN."
  (llm-ert--event turn nil (json-encode (llm-ert--ollama-answer turn "" "" nil t))))

(cl-defmethod llm-ert--api-whole ((_api (eql 'ollama)) turn)
  "Return the whole answer of TURN."
  (llm-ert--ollama-answer turn (llm-ert--text turn nil) (llm-ert--text turn 'thought)
                          (llm-ert--calls turn) t))

(cl-defmethod llm-ert--api-error ((_api (eql 'ollama)) _status _name text)
  "Return the error TEXT."
  (list :error text))

;;;; Vectors of texts, and names of models

(cl-defmethod llm-ert--api-shown ((_api (eql 'embeddings)) body path)
  "Return the texts of which BODY, a request at PATH, wants vectors."
  (let ((texts (or (plist-get body :input)
                   (mapcar (lambda (content)
                             (llm-ert--flat (plist-get (plist-get content :content)
                                                       :parts)))
                           (or (plist-get body :requests) (list body))))))
    (list :texts (ensure-list texts)
          :model (or (plist-get body :model)
                     (and (string-match "/models/\\([^:]+\\):" path)
                          (match-string 1 path))))))

(defun llm-ert--embeddings (path vectors model)
  "Return VECTORS by MODEL as the interface at PATH has them."
  (pcase (car (llm-ert--api-of path))
    ('ollama (list :model model :embeddings (vconcat vectors)))
    ('gemini (if (string-match-p ":batchEmbed" path)
                 (list :embeddings (vconcat (mapcar (lambda (vector) (list :values vector))
                                                    vectors)))
               (list :embedding (list :values (car vectors)))))
    (_ (list :object "list" :model model
             :data (vconcat (cl-loop for vector in vectors
                                     for number from 0
                                     collect (list :object "embedding" :index number
                                                   :embedding vector)))
             :usage '(:prompt_tokens 0 :total_tokens 0)))))

(defun llm-ert--models-json (path)
  "Return as JSON the names of models, as the interface at PATH has them."
  (json-encode
   (cond ((string-match-p "/api/tags" path) '(:models [(:name "model" :model "model")]))
         ((string-match-p "/v1beta/" path)
          '(:models [( :name "models/model"
                       :supportedGenerationMethods ["generateContent"])]))
         (t '(:object "list" :data [(:id "model" :object "model")])))))

(provide 'llm-ert-api)
;;; llm-ert-api.el ends here
