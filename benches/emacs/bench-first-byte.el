;;; bench-first-byte.el --- Time a question until the model hears it  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; How long it takes from RET in a chat until the first byte of the
;; request is at the model, in a session of 1,000 messages with 50
;; items: Emacs, the server and what is between them together.
;;
;; The model is played by another Emacs, an HTTP server on this machine
;; that says when a request begins to come.  Nothing is drawn, since
;; this Emacs has no screen.
;;
;; Prints rows as from-emacs.el does.  CONTEXTURE_BIN names the server.
;; By itself: emacs -Q --batch -L elisp -L benches/emacs
;; -l bench-first-byte -f bench-first-byte-run, with everything
;; byte-compiled.

;;; Code:

(require 'cl-lib)
(require 'from-emacs)

(declare-function contexture-conversation "contexture-conversation" (&optional session))
(declare-function contexture-conversation--busy-p "contexture-conversation-turn" ())
(declare-function contexture-conversation--set-text "contexture-conversation-turn" (text))
(declare-function contexture-conversation-send "contexture-conversation-turn" ())
(defvar contexture-conversation-history-file)
(defvar contexture-conversation--messages)

(defconst bench-first-byte-messages 1000 "How many messages the session has.")

(defconst bench-first-byte-items 50 "How many items its context has, of 2 KB each.")

(defconst bench-first-byte-turns 41 "How many questions are asked.")

;;;; The model

(defconst bench-first-byte-answer
  (let ((body (concat "data: {\"choices\":[{\"delta\":{\"content\":\"Yes.\"}}]}\n\n"
                      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
                      "data: [DONE]\n\n")))
    (format (concat "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    "Content-Length: %d\r\n\r\n%s")
            (length body) body))
  "What the model says to everything.")

(defun bench-first-byte-whole-p (request)
  "Return non-nil if REQUEST has as many bytes as it says."
  (when-let* ((end (string-search "\r\n\r\n" request)))
    (let ((case-fold-search t))
      (and (string-match "^content-length: *\\([0-9]+\\)" request)
           (>= (length request)
               (+ end 4 (string-to-number (match-string 1 request))))))))

(defun bench-first-byte-hear (client chunk)
  "Answer CLIENT once CHUNK completes its request; say when a question began.
The server also asks for the limit of the model, which is no question."
  (let ((request (process-get client 'request)))
    (when (and (not request) (string-prefix-p "POST " chunk))
      (message "heard %.6f" (float-time)))
    (setq request (concat request chunk))
    (if (not (bench-first-byte-whole-p request))
        (process-put client 'request request)
      (process-put client 'request nil)
      (process-send-string client bench-first-byte-answer))))

(defun bench-first-byte-serve ()
  "Play the model, until killed; say at which port."
  (let ((server (make-network-process
                 :name "model" :server t :host "127.0.0.1" :service t :noquery t
                 :coding 'binary :filter #'bench-first-byte-hear)))
    (message "port %d" (cadr (process-contact server)))
    (while t (accept-process-output nil 1))))

;;;; The Emacs that asks

(defvar bench-first-byte-said "" "What the model has said of itself.")

(defun bench-first-byte-wait (regexp)
  "Wait until the model has said what REGEXP matches; return its number."
  (with-timeout (20 (error "The model says only %S" bench-first-byte-said))
    (while (not (string-match regexp bench-first-byte-said))
      (accept-process-output nil 0.001)))
  (prog1 (string-to-number (match-string 1 bench-first-byte-said))
    (setq bench-first-byte-said
          (substring bench-first-byte-said (match-end 0)))))

(defun bench-first-byte-model ()
  "Return the process that plays the model."
  (make-process
   :name "model" :noquery t :connection-type 'pipe
   :command (list (expand-file-name invocation-name invocation-directory)
                  "-Q" "--batch" "-L" (file-name-directory (locate-library "bench-first-byte"))
                  "-L" (file-name-directory (locate-library "contexture"))
                  "-l" "bench-first-byte" "-f" "bench-first-byte-serve")
   :filter (lambda (_ chunk)
             (setq bench-first-byte-said (concat bench-first-byte-said chunk)))))

(defun bench-first-byte-fill ()
  "Make the session with its messages and items."
  (let ((session (contexture-request 'open-session '(:name "long"))))
    (contexture-request
     'add-message
     (list :messages
           (cl-loop for number from 1 to bench-first-byte-messages collect
                    (list :role (if (cl-oddp number) :user :assistant)
                          :content (bench-first-byte-text number 200))))
     :timeout 60)
    (dotimes (number bench-first-byte-items)
      (contexture-request
       'add-context
       (list :manager (plist-get session :manager) :type :code :brief t
             :content (bench-first-byte-text number 2000)))))
  (contexture-request 'ping))

(defun bench-first-byte-text (number length)
  "Return a text of LENGTH characters that says that it is NUMBER."
  (let ((line (format "(defun part-%d (a b) \"Add.\" (+ a b)) ; see src/part-%d.el\n"
                      number number)))
    (substring (apply #'concat (make-list (1+ (/ length (length line))) line)) 0 length)))

(defun bench-first-byte-ask (number)
  "Ask question NUMBER; return how many milliseconds it was on its way."
  (contexture-conversation--set-text (format "What of part %d?" number))
  (garbage-collect)
  (let ((start (float-time)))
    (call-interactively #'contexture-conversation-send)
    (prog1 (* 1e3 (- (bench-first-byte-wait "heard \\([0-9.]+\\)\n") start))
      (with-timeout (20 (error "Question %d was not answered" number))
        (while (contexture-conversation--busy-p) (accept-process-output nil 0.001))))))

(defun bench-first-byte-measure ()
  "Print the rows for the server in use."
  (require 'contexture-conversation)
  (setq contexture-conversation-history-file nil)
  (bench-first-byte-fill)
  (contexture-conversation "long")
  (while (not contexture-conversation--messages) (accept-process-output nil 0.01))
  (let ((times (sort (cl-loop for number from 1 to bench-first-byte-turns
                              collect (bench-first-byte-ask number))
                     #'<))
        (measure "RET to first byte at the model, 1,000 messages, 50 items"))
    (bench-row-limit (concat measure ", median") (bench-quantile times 0.5) 30)
    (bench-row-limit (concat measure ", p95") (bench-quantile times 0.95) 30)))

(defun bench-first-byte-run ()
  "Start a server that talks to a model of our own, and print the rows."
  (let* ((inhibit-message t)
         (model (bench-first-byte-model))
         (configuration (make-temp-file "contexture-bench-" nil ".toml"))
         (process-environment (cons (concat "CONTEXTURE_CONFIG=" configuration)
                                    process-environment)))
    (unwind-protect
        (progn
          (with-temp-file configuration
            (insert (format (concat "[[providers]]\nname = \"bench\"\nkind = \"openai\"\n"
                                    "model = \"bench\"\nbase-url = \"http://127.0.0.1:%d/v1\"\n")
                            (bench-first-byte-wait "port \\([0-9]+\\)\n"))))
          (let ((contexture--connection
                 (bench-connection (getenv "CONTEXTURE_BIN") "--state"
                                   (concat (getenv "CONTEXTURE_STATE") "-chat"))))
            (bench-first-byte-measure)
            (contexture-disconnect)))
      (delete-process model)
      (delete-file configuration))))

(provide 'bench-first-byte)
;;; bench-first-byte.el ends here
