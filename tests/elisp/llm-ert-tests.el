;;; llm-ert-tests.el --- Tests of the kit for tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What llm-ert promises to any suite.  Nothing of Contexture is loaded.

;;; Code:

(require 'llm-ert)
(require 'jsonrpc)

(setq llm-ert-timeout 20)

(defmacro llm-ert-tests--failure (&rest body)
  "Return as text what BODY, which must fail as a test does, says."
  (declare (indent 0) (debug t))
  `(format "%S" (cdr (should-error (progn ,@body) :type 'ert-test-failed))))

(defmacro llm-ert-tests--should-fail (text &rest body)
  "Fail unless BODY fails as a test does, and says TEXT.
Inside of `should', `should-error' would not catch what fails a test."
  (declare (indent 1) (debug t))
  `(let ((said (llm-ert-tests--failure ,@body)))
     (should (string-search ,text said))))

;;;; A client of HTTP

(defun llm-ert-tests--send (path data &optional headers verb)
  "Send DATA, a text or data, to PATH with HEADERS and VERB; return the process.
Its property `got' is what came."
  (let ((body (encode-coding-string (if (stringp data) data (json-encode data)) 'utf-8))
        (process (make-network-process
                  :name "client" :host "127.0.0.1" :service (llm-ert-port)
                  :coding 'binary :noquery t :sentinel #'ignore
                  :filter (lambda (process chunk)
                            (process-put process 'chunks
                                         (cons chunk (process-get process 'chunks)))
                            (process-put process 'got
                                         (concat (process-get process 'got) chunk))))))
    (process-send-string
     process (format "%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s"
                     (or verb "POST") path
                     (mapconcat (lambda (it) (concat it "\r\n")) headers "")
                     (length body) body))
    process))

(defun llm-ert-tests--got (process)
  "Return (STATUS TEXT HEADERS) of what PROCESS got once it ended."
  (llm-ert-wait-for (not (process-live-p process)))
  (let ((got (process-get process 'got)))
    (when (and got (string-match "\r\n\r\n" got))
      (let* ((start (match-end 0))
             (head (llm-ert--http-head (substring got 0 start)))
             (body (substring got start)))
        (list (string-to-number (nth 1 (split-string (car head))))
              (decode-coding-string
               (if (equal (llm-ert--header (cdr head) "transfer-encoding") "chunked")
                   (or (llm-ert--http-unchunked body) "not whole")
                 body)
               'utf-8-unix)
              (cdr head))))))

(defun llm-ert-tests--ask (path data &rest more)
  "Return (STATUS TEXT HEADERS) of the answer to DATA at PATH; MORE as in send."
  (llm-ert-tests--got (apply #'llm-ert-tests--send path data more)))

(defun llm-ert-tests--events (text)
  "Return the data of the events in TEXT that are JSON objects."
  (cl-loop for line in (split-string text "\r?\n")
           when (string-match "\\`\\(?:data: ?\\|\\[\\|,\\)?\\({.*}\\)\\'" line)
           collect (llm-ert--read-json
                    (encode-coding-string (match-string 1 line) 'utf-8))))

(defun llm-ert-tests--in (data &rest path)
  "Return what stands in DATA at PATH, keys and indexes."
  (dolist (step path data)
    (setq data (if (integerp step) (nth step data) (plist-get data step)))))

(defconst llm-ert-tests--apis
  `((openai "/v1/chat/completions"
            (:model "m" :messages [(:role "system" :content "Be brief.")
                                   (:role "user" :content "Why λ?")])
            ,(lambda (event) (llm-ert-tests--in event :choices 0 :delta :content))
            ,(lambda (whole) (llm-ert-tests--in whole :choices 0 :message :content)))
    (responses "/v1/responses"
               (:model "m" :instructions "Be brief."
                :input [(:role "user" :content [(:type "input_text" :text "Why λ?")])])
               ,(lambda (event) (and (equal (plist-get event :type)
                                            "response.output_text.delta")
                                     (plist-get event :delta)))
               ,(lambda (whole) (llm-ert-tests--in whole :output 0 :content 0 :text)))
    (anthropic "/v1/messages"
               (:model "m" :system "Be brief."
                :messages [(:role "user" :content "Why λ?")])
               ,(lambda (event) (llm-ert-tests--in event :delta :text))
               ,(lambda (whole) (llm-ert-tests--in whole :content 0 :text)))
    (gemini "/v1beta/models/m:generateContent"
            (:systemInstruction (:parts [(:text "Be brief.")])
             :contents [(:role "user" :parts [(:text "Why λ?")])])
            ,(lambda (event) (llm-ert-tests--in event :candidates 0 :content :parts 0 :text))
            ,(lambda (whole)
               (llm-ert--flat (llm-ert-tests--in whole :candidates 0 :content :parts))))
    (ollama "/api/chat"
            (:model "m" :messages [(:role "system" :content "Be brief.")
                                   (:role "user" :content "Why λ?")])
            ,(lambda (event) (llm-ert-tests--in event :message :content))
            ,(lambda (whole) (llm-ert-tests--in whole :message :content))))
  "Interfaces: name, path, request, and readers of the text of an event and a whole.")

(defun llm-ert-tests--request (entry stream)
  "Return (PATH DATA) of the request of ENTRY, an interface; if STREAM, a stream."
  (pcase-let ((`(,api ,path ,data . ,_) entry))
    (if (eq api 'gemini)
        (list (if stream "/v1beta/models/m:streamGenerateContent?alt=sse" path) data)
      (list path (append data (list :stream (or stream :json-false)))))))

(defun llm-ert-tests--text (entry stream answer)
  "Return the text of ANSWER, as `llm-ert-tests--ask' returns it, through ENTRY.
STREAM says that it is a stream."
  (if stream
      (mapconcat (lambda (event) (or (funcall (nth 3 entry) event) ""))
                 (llm-ert-tests--events (nth 1 answer)) "")
    (funcall (nth 4 entry)
             (llm-ert--read-json (encode-coding-string (nth 1 answer) 'utf-8)))))

;;;; Models

(ert-deftest llm-ert-models-speak-every-interface ()
  (dolist (entry llm-ert-tests--apis)
    (dolist (stream '(t nil))
      (ert-info ((format "%s, streamed: %s" (car entry) stream))
        (let ((shown
               (llm-ert-with-model '(("It is " "so, 😀."))
                 :all t
                 (should (equal (llm-ert-tests--text
                                 entry stream
                                 (apply #'llm-ert-tests--ask
                                        (llm-ert-tests--request entry stream)))
                                "It is so, 😀.")))))
          (should (equal (length shown) 1))
          (should (eq (plist-get (car shown) :api) (car entry)))
          (should (equal (plist-get (car shown) :prompt) "Why λ?"))
          (should (equal (plist-get (car shown) :system) "Be brief."))
          (should (equal (plist-get (car shown) :model) "m"))
          (should (eq (null stream) (null (plist-get (car shown) :stream)))))))))

(defconst llm-ert-tests--conversations
  '((openai "/v1/chat/completions"
            (:messages [(:role "user" :content "Read.")
                        (:role "assistant" :content nil
                         :tool_calls [(:id "c1" :type "function"
                                       :function (:name "read" :arguments "{\"path\":\"a\"}"))])
                        (:role "tool" :tool_call_id "c1" :content "text")]
             :tools [(:type "function" :function (:name "read"))]))
    (responses "/v1/responses"
               (:input [(:role "user" :content "Read.")
                        (:type "function_call" :call_id "c1" :name "read"
                         :arguments "{\"path\":\"a\"}")
                        (:type "function_call_output" :call_id "c1" :output "text")]
                :tools [(:type "function" :name "read")]))
    (anthropic "/v1/messages"
               (:messages [(:role "user" :content "Read.")
                           (:role "assistant"
                            :content [(:type "tool_use" :id "c1" :name "read"
                                       :input (:path "a"))])
                           (:role "user"
                            :content [(:type "tool_result" :tool_use_id "c1"
                                       :content "text")])]
                :tools [(:name "read")]))
    (gemini "/v1beta/models/m:generateContent"
            (:contents [(:role "user" :parts [(:text "Read.")])
                        (:role "model" :parts [(:functionCall (:id "c1" :name "read"
                                                               :args (:path "a")))])
                        (:role "user"
                         :parts [(:functionResponse (:name "read"
                                                     :response (:result "text")))])]
             :tools [(:functionDeclarations [(:name "read")])]))
    (ollama "/api/chat"
            (:stream :json-false
             :messages [(:role "user" :content "Read.")
                        (:role "assistant" :content ""
                         :tool_calls [(:function (:name "read" :arguments (:path "a")))])
                        (:role "tool" :tool_name "read" :content "text")]
             :tools [(:type "function" :function (:name "read"))])))
  "A call of a tool and its result, as each interface has them.")

(ert-deftest llm-ert-models-see-and-make-calls-of-tools ()
  (pcase-dolist (`(,api ,path ,data) llm-ert-tests--conversations)
    (ert-info ((symbol-name api))
      (let* ((answer nil)
             (shown (car (llm-ert-with-model '(((thought "Hm.") "So: "
                                                (call "read" (:path "b")) (call "list")))
                           (setq answer (nth 1 (llm-ert-tests--ask path data)))))))
        (should (equal (mapcar (lambda (it) (plist-get it :role))
                               (plist-get shown :messages))
                       '(user assistant tool)))
        (let ((call (car (plist-get (nth 1 (plist-get shown :messages)) :calls))))
          (should (equal (plist-get call :name) "read"))
          (should (equal (plist-get call :arguments) '(:path "a"))))
        (should (equal (plist-get shown :prompt) "text"))
        (should (equal (plist-get shown :tools) '("read")))
        (dolist (part '("Hm." "So: " "read" "list" "path"))
          (should (string-search part answer)))))))

(ert-deftest llm-ert-models-stream-calls-in-every-interface ()
  (dolist (entry llm-ert-tests--apis)
    (ert-info ((symbol-name (car entry)))
      (llm-ert-with-model '(((thought "Hm.") (call "read" (:path "b"))
                             (usage :input 7 :output 3)))
        (let ((text (nth 1 (apply #'llm-ert-tests--ask
                                  (llm-ert-tests--request entry t)))))
          (dolist (part '("Hm." "read" "7"))
            (should (string-search part text)))
          (should (string-match-p "\\(?:b\\\\\\|b\"\\)" text)))))))

(ert-deftest llm-ert-shown-has-headers-path-and-order ()
  (let ((shown (llm-ert-with-model '("One." "Two.")
                 (dolist (text '("a" "b"))
                   (llm-ert-tests--ask "/v1/chat/completions?x=1"
                                       (list :messages (vector (list :role "user" :content text)))
                                       '("Authorization: Bearer k" "X-Thing: T"))))))
    (should (equal (mapcar (lambda (it) (list (plist-get it :number) (plist-get it :prompt)))
                           shown)
                   '((1 "a") (2 "b"))))
    (should (equal (cdr (assoc "authorization" (plist-get (car shown) :headers)))
                   "Bearer k"))
    (should (equal (cdr (assoc "x-thing" (plist-get (car shown) :headers))) "T"))
    (should (equal (plist-get (car shown) :path) "/v1/chat/completions?x=1"))
    (should (equal (plist-get (car shown) :verb) "POST"))))

(ert-deftest llm-ert-models-can-insist-on-being-asked ()
  (llm-ert-tests--should-fail "never-asked-for (\"Two.\")"
    (llm-ert-with-model '("One." "Two.")
      :all t
      (llm-ert-tests--ask "/v1/messages" '(:messages []))))
  (llm-ert-tests--should-fail "no-answer-left"
    (llm-ert-with-model nil
      (llm-ert-tests--ask "/v1/messages" '(:messages [])))))

(ert-deftest llm-ert-models-have-names ()
  (llm-ert-with-model nil
    (pcase-dolist (`(,path ,key) '(("/v1/models" :data) ("/api/tags" :models)
                                   ("/v1beta/models/?key=k" :models)))
      (pcase-let ((`(,status ,text . ,_)
                   (llm-ert-tests--got (llm-ert-tests--send path "" nil "GET"))))
        (should (equal status 200))
        (should (plist-get (llm-ert--read-json (encode-coding-string text 'utf-8)) key))))))

(ert-deftest llm-ert-models-say-what-went-wrong-in-them ()
  (dolist (path '("/v1/chat/completions" "/v1/messages" "/v1/embeddings" "/api/chat"))
    (llm-ert-tests--should-fail "no-json"
      (llm-ert-with-model '("One.")
        (should (equal (car (llm-ert-tests--ask path "{\"model\":")) 400)))))
  ;; Also if what came of it fails the test first.
  (let (explained)
    (llm-ert-tests--should-fail "overloaded"
      (cl-letf (((symbol-function 'llm-ert--explaining)
                 (lambda (explain function)
                   (funcall function)
                   (push (funcall explain) explained))))
        (llm-ert-with-model '((error overloaded "x"))
          (llm-ert-tests--ask "/v1/messages" '(:messages [])))))
    (should (string-match-p "What went wrong:\n.*cannot fail with overloaded"
                            (apply #'concat explained)))))

(ert-deftest llm-ert-models-make-vectors ()
  (let ((shown
         (llm-ert-with-model nil
           (let ((vectors
                  (cl-loop
                   for (path data . where)
                   in '(("/v1/embeddings" (:model "e" :input ["cats and dogs" "cats"])
                         :data 0 :embedding)
                        ("/api/embed" (:model "e" :input "cats and dogs") :embeddings 0)
                        ("/v1beta/models/e:embedContent"
                         (:content (:parts [(:text "cats and dogs")])) :embedding :values)
                        ("/v1beta/models/e:batchEmbedContents"
                         (:requests [(:content (:parts [(:text "cats and dogs")]))])
                         :embeddings 0 :values))
                   collect (apply #'llm-ert-tests--in
                                  (llm-ert--read-json (nth 1 (llm-ert-tests--ask path data)))
                                  where))))
             (should (= (length (car vectors)) llm-ert--dimensions))
             (should (= 1 (length (delete-dups vectors))))))))
    (should (equal (plist-get (car shown) :texts) '("cats and dogs" "cats")))
    (should (equal (mapcar (lambda (it) (plist-get it :model)) shown) '("e" "e" "e" "e"))))
  (llm-ert-with-model nil
    :embed (lambda (_) '(error rate-limited "slow" :retry-after 3))
    (pcase-let ((`(,status ,_ ,headers)
                 (llm-ert-tests--ask "/v1/embeddings" '(:input "x"))))
      (should (= status 429))
      (should (equal (llm-ert--header headers "retry-after") "3")))))

;;;; Faults

(defun llm-ert-tests--faulty (api &rest pieces)
  "Return (STATUS TEXT HEADERS) of the stream of PIECES through API."
  (let (answer)
    (llm-ert-with-model (list pieces)
      (setq answer (apply #'llm-ert-tests--ask
                          (llm-ert-tests--request (assq api llm-ert-tests--apis) t))))
    answer))

(defun llm-ert-tests--said (api &rest pieces)
  "Return the text in the stream of PIECES through API."
  (llm-ert-tests--text (assq api llm-ert-tests--apis) t
                       (apply #'llm-ert-tests--faulty api pieces)))

(ert-deftest llm-ert-every-fault-works-in-every-interface ()
  (dolist (entry llm-ert-tests--apis)
    (dolist (word (mapcar #'car llm-ert-faults))
      (ert-info ((format "%s, %s" (car entry) word))
        (llm-ert-with-model (list (list "Half " word "done." '(call "f" (:a "b"))))
          (let ((client (apply #'llm-ert-tests--send (llm-ert-tests--request entry t))))
            (cond ((memq word '(hang pings open))
                   (llm-ert-wait-for (process-get client 'got))
                   (should (process-live-p client))
                   (delete-process client))
                  (t (llm-ert-tests--got client)))))))))

(ert-deftest llm-ert-faults-that-last-leave-the-text-as-it-is ()
  (dolist (entry llm-ert-tests--apis)
    (dolist (word '(torn halves crlf tight comments scraps late))
      (ert-info ((format "%s, %s" (car entry) word))
        (should (equal (encode-coding-string
                        (llm-ert-tests--said (car entry) word "né 漢 " "😀!") 'utf-16)
                       (encode-coding-string
                        (if (eq word 'halves) (concat "né 漢 " (string #xd83d #xde00) "!")
                          "né 漢 😀!")
                        'utf-16)))))))

(ert-deftest llm-ert-faults-are-what-they-are-called ()
  (should (equal (car (llm-ert-tests--faulty 'openai 'page)) 502))
  (should-not (llm-ert-tests--faulty 'openai 'dropped))
  (should (equal (nth 1 (llm-ert-tests--faulty 'openai "Half" 'cut)) "not whole"))
  (let ((text (nth 1 (llm-ert-tests--faulty 'openai "Half" 'unfinished))))
    (should (string-search "Half" text))
    (should-not (string-search "[DONE]" text)))
  (pcase-let ((`(,status ,text) (llm-ert-tests--faulty 'openai 'masked
                                                       '(error rate-limited "slow"))))
    (should (= status 200))
    (should (string-prefix-p "{\"type\":\"error\"" text)))
  (pcase-let ((`(,status ,text) (llm-ert-tests--faulty 'anthropic 'late '(error 529 "busy"))))
    (should (= status 200))
    (should (string-search "event: error" text)))
  (should (string-search "\\ud83d" (nth 1 (llm-ert-tests--faulty 'gemini 'halves "😀"))))
  (should (string-search "data: null" (nth 1 (llm-ert-tests--faulty 'openai 'null))))
  (should (string-search "data:{" (nth 1 (llm-ert-tests--faulty 'openai 'tight "a"))))
  (should (string-search ": keep-alive\r\n" (nth 1 (llm-ert-tests--faulty 'openai 'crlf 'comments "a"))))
  (should (string-search "\"content\":\"Whole\""
                         (nth 1 (llm-ert-tests--faulty 'openai 'whole "Whole"))))
  (let ((call '(call "f" (:path "abcdefgh"))))
    (should (string-search "\"arguments\":{\"path\""
                           (nth 1 (llm-ert-tests--faulty 'openai 'objects call))))
    (should-not (string-search "\"index\":0,\"id\":\"call"
                               (nth 1 (llm-ert-tests--faulty 'openai 'unnumbered call))))
    (should (< 3 (length (llm-ert-tests--events
                          (nth 1 (llm-ert-tests--faulty 'anthropic 'scraps call)))))))
  (llm-ert-tests--should-fail "A model cannot do nonsense"
    (llm-ert-with-model '(nonsense)
      (llm-ert-tests--ask "/v1/messages" '(:messages [])))))

(ert-deftest llm-ert-pings-come-for-ever ()
  (llm-ert-with-model '(("Half" pings))
    (let ((client (apply #'llm-ert-tests--send
                         (llm-ert-tests--request (assq 'anthropic llm-ert-tests--apis) t))))
      (llm-ert-wait-for (string-match-p "event: ping\\(?:.\\|\n\\)*event: ping\
\\(?:.\\|\n\\)*event: ping" (or (process-get client 'got) ""))))))

(ert-deftest llm-ert-models-pause-at-steps ()
  (llm-ert-with-model '(("One " (step half) "two."))
    (let ((client (llm-ert-tests--send "/v1/messages" '(:messages [] :stream t))))
      (llm-ert-await-step 'half)
      (llm-ert-wait-for (string-search "One " (or (process-get client 'got) "")))
      (should-not (string-search "two." (process-get client 'got)))
      (llm-ert-go-on 'half)
      (should (string-search "two." (nth 1 (llm-ert-tests--got client)))))))

;;;; Waiting and leaving nothing

(ert-deftest llm-ert-waits-for-a-timer-and-returns-the-value ()
  (let (value)
    (run-at-time 0.01 nil (lambda () (setq value 3)))
    (should (= (llm-ert-wait-for value) 3))))

(ert-deftest llm-ert-waits-longer-on-a-busy-machine ()
  (should (equal (mapcar (lambda (load)
                           (llm-ert--patience (* load (num-processors))))
                         '(0 0.5 1 3 1000))
                 '(1 1 1 3.0 5))))

(ert-deftest llm-ert-says-what-never-came-true ()
  (let ((text (llm-ert-tests--failure
                (llm-ert-wait-for (eq 1 2)
                  :timeout 0.02 :message "one is not two"))))
    (should (string-match-p "one is not two" text))
    (should (string-match-p "(eq 1 2)" text)))
  (with-temp-buffer
    (insert "Half")
    (let ((text (llm-ert-tests--failure
                  (llm-ert-wait-for (string-search "Whole" (buffer-string))
                    :timeout 0.02))))
      (should (string-search ":seen (string-search \"Whole\" \"Half\")" text)))))

(ert-deftest llm-ert-knows-and-removes-what-a-test-leaves ()
  (let (things)
    (should-not
     (llm-ert-leftovers
       (llm-ert-with-files nil
         (setq things
               (llm-ert-leftovers
                 (with-current-buffer (get-buffer-create " hidden one")
                   (add-hook 'kill-buffer-hook (lambda () (error "Not me")) nil t))
                 (make-pipe-process :name "a pipe" :noquery t)
                 (run-at-time 1000 nil (lambda () nil))
                 (remove-hook 'find-file-hook 'vc-refresh-state)
                 (add-hook 'find-file-hook #'llm-ert-tests--ask))))))
    (should (equal (mapcar #'car things) '(buffer buffer process timer hook)))
    (should (equal (car (last things))
                   '(hook find-file-hook llm-ert-tests--ask)))
    (should (memq 'vc-refresh-state (default-value 'find-file-hook)))))

(ert-deftest llm-ert-files-are-a-project-of-their-own ()
  (let (folder)
    (llm-ert-with-files '(("src/a.el" . "λ\n") ("empty/"))
      (setq folder llm-ert-directory)
      (should (equal default-directory folder))
      (with-current-buffer (find-file-noselect "src/a.el")
        (should (equal (buffer-string) "λ\n"))
        (should (equal (project-root (project-current)) folder)))
      (should (file-directory-p "empty"))
      (should-error (llm-ert-write-file "../b" "x")))
    (should-not (file-exists-p folder)))
  (llm-ert-with-files nil
    :project nil
    (should-not (project-current))))

(ert-deftest llm-ert-models-and-servers-leave-nothing ()
  (should-not
   (llm-ert-leftovers
     (ignore-errors
       (llm-ert-with-model '(("Half" pings))
         (get-buffer-create "left behind")
         (llm-ert-tests--send "/v1/messages" '(:messages [] :stream t))
         (llm-ert-with-server #'ignore
           (make-network-process :name "x" :host "127.0.0.1" :service (llm-ert-port))
           (run-at-time 1000 nil #'ignore)
           (accept-process-output nil 0.1)
           (error "Oops"))))
     ;; A pinging model stops by itself.
     (accept-process-output nil (* 3 llm-ert--ping-delay)))))

(ert-deftest llm-ert-messages-are-captured-without-compiling ()
  (message "the same")
  (let ((start (float-time)))
    (llm-ert-with-messages said
      (should (equal said ""))
      (let ((inhibit-message t)) (message "the same"))
      (run-at-time 0.001 nil (lambda () (message "later %d" 7)))
      (llm-ert-wait-for (string-search "later 7" said))
      (should (equal said "the same\nlater 7\n")))
    (should-not (advice--p (symbol-function 'message)))
    (should (< (- (float-time) start) llm-ert-timeout))))

;;;; Servers of JSON-RPC

(defun llm-ert-tests--client (&optional dispatch)
  "Return a client of jsonrpc.el; DISPATCH gets notifications."
  (make-instance
   'jsonrpc-process-connection :name "client"
   :notification-dispatcher (or dispatch #'ignore)
   :process (lambda ()
              (make-network-process :name "client" :host "127.0.0.1" :noquery t
                                    :service (llm-ert-port)))))

(ert-deftest llm-ert-servers-serve-clients-of-jsonrpc ()
  (llm-ert-with-server
      (lambda (method params)
        (pcase method
          ('add (list 'result (apply #'+ (append (plist-get params :terms) nil))))
          ('tell '(notify told (:text "λ")))
          ('fail '(error 3 "no"))))
    (let* ((told nil)
           (client (llm-ert-tests--client
                    (lambda (_ method params) (setq told (list method params))))))
      (should (= (jsonrpc-request client 'add '(:terms [1 2 3])) 6))
      (should-error (jsonrpc-request client 'fail nil) :type 'jsonrpc-error)
      (jsonrpc-notify client 'tell nil)
      (llm-ert-wait-for told)
      (should (equal told '(told (:text "λ"))))
      (should (equal (llm-ert-should-called 'add '(:terms (1 2 3))) '(:terms (1 2 3))))
      (llm-ert-should-not-called 'subtract)
      (let ((llm-ert-timeout 0.05))
        (llm-ert-tests--should-fail "never-called subtract"
          (llm-ert-should-called 'subtract))))))

(ert-deftest llm-ert-servers-serve-programs-line-by-line ()
  (skip-unless (executable-find "bash"))
  (llm-ert-with-server
      (lambda (method _)
        (pcase method
          ('initialize '((notify log (:text "λ")) (result (:name "x"))))
          ('die '((raw "half a li") hang-up))))
    :framing 'lines
    (let* ((got "")
           (client (make-process :name "client" :command (llm-ert-command) :noquery t
                                 :connection-type 'pipe :coding 'utf-8
                                 :filter (lambda (_ chunk) (setq got (concat got chunk))))))
      (process-send-string client "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n")
      (llm-ert-wait-for (= 2 (cl-count ?\n got)))
      (should (string-match-p "\"text\":\"λ\".*\n.*\"id\":1,\"result\"" got))
      (process-send-string client "{\"jsonrpc\":\"2.0\",\"method\":\"die\"}\n")
      (llm-ert-wait-for (string-suffix-p "half a li" got))
      (llm-ert-wait-for (not (process-live-p client))))))

(ert-deftest llm-ert-servers-fail-the-test-if-they-fail ()
  (llm-ert-tests--should-fail "Oops"
    (llm-ert-with-server (lambda (&rest _) (error "Oops"))
      (ignore-errors
        (let ((debug-on-error nil))
          (jsonrpc-request (llm-ert-tests--client) 'x nil))))))

(provide 'llm-ert-tests)
;;; llm-ert-tests.el ends here
