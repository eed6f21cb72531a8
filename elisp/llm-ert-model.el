;;; llm-ert-model.el --- Models written in Lisp  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `llm-ert-with-model' runs a model that says what a test has it say.  It
;; listens on the loopback interface, so that gptel, llm and others can ask
;; it:
;;
;;     (llm-ert-with-model
;;         '("Yes."
;;           (("Let me " "see.") (call "read_file" (:path "a.el")))
;;           (error rate-limited "too many requests"))
;;       (my-ask "Is it?"))

;;; Code:

(require 'llm-ert-api)
(eval-when-compile (require 'subr-x))

(cl-defstruct (llm-ert--model (:constructor llm-ert--make-model) (:copier nil))
  "A model of a test.
LISTENER is its process; ANSWERS are those to come, or a function; EMBED
makes vectors of texts;
SHOWN is what it was asked, the newest first; REFUSED is the pair of the
last request that it refused and its error; PROBLEM says what went wrong,
or is nil."
  listener answers embed shown refused problem)

(defvar llm-ert--model nil
  "Model of the test that runs, or nil.")

(defvar llm-ert-model-hook nil
  "Hook run when a model of a test listens, and again when it is gone.
For packages that have to be told of a model.  Within the first run,
`llm-ert-url' returns its address.")

(defmacro llm-ert-with-model (answers &rest body)
  "Run BODY with a model that says ANSWERS; return what it was shown.
Fail if the model is asked more often than there are ANSWERS.

`llm-ert-host' returns the host and port at which it listens, and
`llm-ert-url' the base of the address.  The path of a request tells
which interface is meant: those of OpenAI (chat completions, responses,
and embeddings), Anthropic, Gemini and Ollama.

ANSWERS is a list of answers, or a function that makes all of them.  An
answer is a string, a list of pieces, or a function that is called with
the request, as in `llm-ert-shown', and returns one of these.  A piece
is one of

  \"TEXT\"                       text, which is streamed
  (thought TEXT)               what the model thinks
  (call NAME ARGUMENTS [ID])   a call of a tool; ARGUMENTS is a property
                               list, or a string as it stands
  (usage :input N :output N :cached N)
                               the tokens that the model counted
  (stop REASON)                a reason such as length for which it ends
  (error KIND TEXT [:retry-after N])
                               an error; KIND is an HTTP status, or one of
                               authentication, rate-limited, unavailable,
                               quota-exhausted, context-too-long, bad-request
  (step NAME)                  wait until `llm-ert-go-on'
  WORD                         a fault, one of `llm-ert-faults'

A client that repeats its request after an error that may pass, such as
rate-limited or 500, gets the error again: clients repeat by themselves.

BODY may begin with keywords:

  :all t          fail, too, if answers are left over
  :embed FUNCTION
                  FUNCTION returns the vector of a text, a list of numbers,
                  or an error as above; without it, texts that share words
                  have vectors that are near to each other"
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (llm-ert--split-keys body)))
    `(llm-ert--call-with-model ,answers (lambda () ,@forms) ,@keys)))

(cl-defun llm-ert--call-with-model (answers function &key all embed)
  "Call FUNCTION with a model that says ANSWERS; return what it was shown.
ALL and EMBED are as in `llm-ert-with-model'."
  (let* ((model (llm-ert--make-model :answers answers
                                     :embed (or embed #'llm-ert--embedding)))
         (llm-ert--steps nil)
         (listener (llm-ert--http-listen "llm-ert-model"
                                         (apply-partially #'llm-ert--asked model))))
    (setf (llm-ert--model-listener model) listener)
    (unwind-protect
        (let ((llm-ert--model model))
          (llm-ert--with-peer
           listener
           (lambda () (llm-ert--model-problem model))
           (lambda ()
             (run-hooks 'llm-ert-model-hook)
             (llm-ert--explaining (lambda () (llm-ert--model-explanation model))
                                  function))))
      (run-hooks 'llm-ert-model-hook))
    (cond ((llm-ert--model-problem model)
           (ert-fail (llm-ert--model-problem model)))
          ((and all (consp (llm-ert--model-answers model)))
           (ert-fail (list 'never-asked-for (llm-ert--model-answers model)
                           :after (length (llm-ert--model-shown model))))))
    (llm-ert-shown model)))

(defun llm-ert-shown (&optional model)
  "Return what MODEL, or that of the test, was shown, in the order of requests.
Each request is a property list of :prompt, the last text; :system;
:messages, each with :role, :content, :calls and :call-id; :tools, their
names; :model; :stream; :api, one of `openai', `responses', `anthropic',
`gemini', `ollama' and `embeddings'; :texts, of which vectors were asked
for; :number, from 1 on; :verb, :path and :headers of the HTTP request, the
headers as an alist with names in lower case; and :body, the data as they
came."
  (reverse (llm-ert--model-shown
            (or model llm-ert--model (error "There is no model in this test")))))

(defun llm-ert--model-explanation (model)
  "Return as text what MODEL was shown, for a test that failed."
  (llm-ert--paragraph
   "The model was shown"
   (mapcar (lambda (shown)
             (format "%S" (cl-loop for (key value) on shown by #'cddr
                                   unless (memq key '(:body :headers))
                                   nconc (list key value))))
           (llm-ert-shown model))))

;;;; Answering

(defun llm-ert--asked (model request)
  "Have MODEL answer the HTTP REQUEST."
  (pcase-let* ((path (plist-get request :path))
               (`(,api . ,kind) (llm-ert--api-of path))
               (process (plist-get request :process))
               (body (and (memq kind '(chat embeddings))
                          (condition-case nil (llm-ert--read-json (plist-get request :body))
                            (error 'no-json)))))
    (pcase kind
      ((guard (eq body 'no-json))
       (setf (llm-ert--model-problem model)
             (list 'no-json :path path :body (plist-get request :body)))
       (llm-ert--refuse process api '(error 400 "the body of the request is no JSON")))
      ('chat (llm-ert--answer-chat model process api request body))
      ('embeddings (llm-ert--answer-embeddings model process request body))
      ('models (llm-ert--http-answer process 200 (llm-ert--models-json path)))
      (_ (llm-ert--http-answer
          process 404
          (json-encode (list :error (list :message (format "no such path: %s" path)))))))))

(defun llm-ert--shown-of (model api request body)
  "Have MODEL note that REQUEST with the data BODY came through API; return that."
  (let ((shown (append (llm-ert--api-shown api body (plist-get request :path))
                       (list :api api :number (1+ (length (llm-ert--model-shown model)))
                             :verb (plist-get request :verb)
                             :path (plist-get request :path)
                             :headers (plist-get request :headers)
                             :body body))))
    (push shown (llm-ert--model-shown model))
    shown))

(defun llm-ert--answer-chat (model process api request body)
  "Have MODEL answer PROCESS, which sent REQUEST with BODY through API."
  (let ((refused (llm-ert--model-refused model))
        (asked (cons (plist-get request :path) (plist-get request :body))))
    (if (equal (car refused) asked)
        (llm-ert--refuse process api (cdr refused))
      (let* ((shown (llm-ert--shown-of model api request body))
             (pieces (llm-ert--next-pieces model shown))
             (piece (car pieces)))
        (setf (llm-ert--model-refused model)
              (and (eq (car-safe piece) 'error)
                   (let ((status (llm-ert--status piece)))
                     (or (memq status '(408 409 429)) (>= status 500)))
                   (cons asked piece)))
        (when (llm-ert--judged
               model shown
               (lambda ()
                 (llm-ert--play
                  (llm-ert--make-turn
                   :process process :api api :pieces pieces
                   :path (plist-get request :path)
                   :name (or (plist-get shown :model) "model")
                   :stream (plist-get shown :stream)))
                 nil))
          (llm-ert--http-close process))))))

(defun llm-ert--next-pieces (model shown)
  "Return the pieces of MODEL's next answer to SHOWN; an error if none is left."
  (let* ((answers (llm-ert--model-answers model))
         (answer (cond ((functionp answers) answers)
                       (answers (pop (llm-ert--model-answers model)))
                       (t (setf (llm-ert--model-problem model)
                                (list 'no-answer-left :shown (plist-get shown :prompt)
                                      :after (1- (plist-get shown :number))))
                          '(error 400 "the test's model has no answer left")))))
    (pcase (llm-ert--judged
            model shown
            (lambda ()
              (let ((pieces (llm-ert--pieces
                             (if (functionp answer) (funcall answer shown) answer))))
                (dolist (piece pieces pieces)
                  (when (eq (car-safe piece) 'error)
                    (llm-ert--status piece))))))
      ((and `(error . ,_) problem) (list problem))
      (pieces pieces))))

(defun llm-ert--judged (model shown function)
  "Return what FUNCTION does, or an error if it fails on MODEL's request SHOWN."
  (condition-case problem
      (funcall function)
    ((error ert-test-failed)
     (setf (llm-ert--model-problem model)
           (list 'model-failed problem :shown (plist-get shown :prompt)))
     (list 'error 500 (format "the model's function failed: %S" problem)))))

(defun llm-ert--answer-embeddings (model process request body)
  "Have MODEL answer PROCESS, which asks for vectors by REQUEST with BODY."
  (let* ((shown (llm-ert--shown-of model 'embeddings request body))
         (vectors (mapcar (lambda (text)
                            (llm-ert--judged
                             model shown
                             (lambda () (funcall (llm-ert--model-embed model) text))))
                          (plist-get shown :texts)))
         (failed (cl-find 'error vectors :key #'car-safe)))
    (if failed
        (llm-ert--refuse process 'openai failed)
      (llm-ert--http-answer
       process 200
       (json-encode (llm-ert--embeddings (plist-get request :path)
                                         (mapcar #'vconcat vectors)
                                         (or (plist-get shown :model) "model")))))))

(defconst llm-ert--dimensions 16
  "Number of numbers in the vector of a text.")

(defun llm-ert--embedding (text)
  "Return a vector of TEXT: each word counts at a place of its own."
  (let ((sums (make-vector llm-ert--dimensions 0)))
    (dolist (word (split-string (downcase text) "[^[:alnum:]]+" t))
      (cl-incf (aref sums (mod (string-to-number (substring (md5 word) 0 6) 16)
                               llm-ert--dimensions))))
    (let ((length (sqrt (max 1 (cl-loop for sum across sums sum (* sum sum))))))
      (mapcar (lambda (sum) (/ sum length)) sums))))

(defun llm-ert--pieces (answer)
  "Return ANSWER as a flat list of pieces."
  (cond ((or (stringp answer) (symbolp answer)) (and answer (list answer)))
        ((and (symbolp (car answer)) (not (assq (car answer) llm-ert-faults)))
         (list answer))
        (t (cl-mapcan #'llm-ert--pieces answer))))

(defun llm-ert--play (turn)
  "Say the pieces of TURN, until it ends or comes to a step."
  (let (piece)
    (while (and (not (llm-ert--turn-ending turn))
                (setq piece (pop (llm-ert--turn-pieces turn))))
      (pcase piece
        (`(step ,name)
         (llm-ert--flush turn)
         (setf (llm-ert--turn-ending turn) 'waits)
         (llm-ert--stand-at
          name (lambda ()
                 (setf (llm-ert--turn-ending turn) nil)
                 (llm-ert--play turn))))
        (`(error . ,_)
         (setf (llm-ert--turn-ending turn) 'error)
         (llm-ert--fail turn piece))
        ((pred symbolp) (llm-ert--fault turn piece))
        (_ (llm-ert--say-piece turn piece))))
    (unless (llm-ert--turn-ending turn)
      (llm-ert--finish turn))))

(provide 'llm-ert-model)
;;; llm-ert-model.el ends here
